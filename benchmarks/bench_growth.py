"""Growth on the real llama.cpp: the bound is below every step, two lengths predict the others.

    python -m benchmarks.bench_growth [PLOT.png [ROUNDS]]

Needs the ``measure`` extra. The peer is the machine's own memory: kvplan's bound is bytes over the
bandwidth that is measured in the same run.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.growth import VARIANTS, Growth, grow
from kvplan.measuring.bandwidth import host_bandwidth
from kvplan.measuring.embedded.weights import embedded_weights


def main() -> None:
    """All variants, the table, and the plot where it is asked for."""
    weights = embedded_weights(None)
    bandwidth = host_bandwidth()
    how = "a copy's bytes, read and written, over the least time of 7"
    print(f"{weights.name}, one thread; memory {bandwidth / 1e9:.1f} GB/s ({how})")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    found = []
    for variant in VARIANTS:
        found.append(grow(weights, variant, bandwidth, rounds=rounds))
        print(table(found[-1]), flush=True)
    if len(sys.argv) > 1:
        chart(found).save(sys.argv[1])
        print(f"wrote {sys.argv[1]}")
    if any(bound > p.seconds for g in found for p, bound in zip(g.points, g.bounds, strict=True)):
        raise SystemExit("A step was faster than the bound.")


def table(growth: Growth) -> str:
    """A variant as Markdown."""
    estimate = growth.estimate
    formula = f"{estimate.fixed_s * 1e3:.2f} ms + {estimate.read_s * 1e6:.3f} µs a token of context"
    lines = [
        f"\n{growth.variant.name}: {formula}; worst error of the predicted {growth.worst:.1%}\n",
        "| context | measured | bound | measured / bound | predicted | error |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for index, (point, bound) in enumerate(zip(growth.points, growth.bounds, strict=True)):
        said = estimate.seconds(point.batch, point.context)
        shown = ("calibrated on", "") if index in growth.calibrated_on else (
            f"{said * 1e3:.2f} ms", f"{said / point.seconds - 1:+.1%}"
        )  # fmt: skip
        lines.append(
            f"| {point.context:,.0f} | {point.seconds * 1e3:.2f} ms | {bound * 1e3:.2f} ms | "
            f"{point.seconds / bound:.1f} | {shown[0]} | {shown[1]} |"
        )
    return "\n".join(lines)


def chart(found: list[Growth]) -> Any:
    """Measured steps as dots, the estimate and the bound as lines."""
    from kvplan.charts.steps import step_times

    rows = [
        {"variant": g.variant.name, "context": p.context, "ms": value * 1e3, "what": what}
        for g in found
        for p, bound in zip(g.points, g.bounds, strict=True)
        for what, value in (
            ("measured", p.seconds),
            ("estimate of two lengths", g.estimate.seconds(p.batch, p.context)),
            ("bound", bound),
        )
    ]
    return step_times(rows, "SmolLM2-135M on llama.cpp, one thread")


if __name__ == "__main__":
    main()
