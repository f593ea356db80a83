"""Growth on the real llama.cpp: the bound is below every step, two lengths predict the others.

    python -m benchmarks.bench_growth [PLOT.png [ROUNDS]]

Needs the ``measure`` extra. The peer is the machine's own memory: kvplan's bound is bytes over the
bandwidth that is measured in the same run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.growth import VARIANTS, Growth, bound, grow
from kvplan.measuring.bandwidth import host_bandwidth
from kvplan.measuring.embedded.weights import embedded_weights


def main() -> None:
    """All variants, the table, and the plot where it is asked for."""
    weights = embedded_weights(None)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    found, bandwidth = [], max(host_bandwidth() for _ in range(3))
    how = "a copy's bytes, read and written, over the least time"
    print(f"{weights.name}, one thread; memory {bandwidth / 1e9:.1f} GB/s ({how})", flush=True)
    for variant in VARIANTS:
        growth = grow(weights, variant, rounds=rounds)
        found.append(
            (growth, [bound(weights, variant, bandwidth, p.context) for p in growth.points])
        )
        print(table(*found[-1]), flush=True)
    if len(sys.argv) > 1:
        chart(found).save(sys.argv[1])
        print(f"wrote {sys.argv[1]}")
    for growth, bounds in found:
        if any(least > point.seconds for point, least in zip(growth.points, bounds, strict=True)):
            raise SystemExit(f"{growth.variant.name}: a step was faster than the bound.")


def table(growth: Growth, bounds: Sequence[float]) -> str:
    """A variant as Markdown."""
    estimate = growth.estimate
    formula = f"{estimate.fixed_s * 1e3:.2f} ms + {estimate.read_s * 1e6:.3f} µs a token of context"
    lines = [
        f"\n{growth.variant.name}: {formula}; worst error of the predicted {growth.worst:.1%}\n",
        "| context | measured | bound | measured / bound | predicted | error |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for index, (point, least) in enumerate(zip(growth.points, bounds, strict=True)):
        said = estimate.seconds(point.batch, point.context)
        shown = f"{said * 1e3:.2f} ms | {said / point.seconds - 1:+.1%}"
        if index in growth.calibrated_on:
            shown = "calibrated on |"
        lines.append(
            f"| {point.context:,.0f} | {point.seconds * 1e3:.2f} ms | {least * 1e3:.2f} ms | "
            f"{point.seconds / least:.1f} | {shown} |"
        )
    return "\n".join(lines)


def chart(found: Sequence[tuple[Growth, Sequence[float]]]) -> Any:
    """Measured steps as dots, the estimate and the bound as lines."""
    from kvplan.charts.steps import step_times

    rows = [
        {"variant": g.variant.name, "context": p.context, "ms": value * 1e3, "what": what}
        for g, least in found
        for p, b in zip(g.points, least, strict=True)
        for what, value in (
            ("measured", p.seconds),
            ("estimate of two lengths", g.estimate.seconds(p.batch, p.context)),
            ("bound", b),
        )
    ]
    return step_times(rows, "SmolLM2-135M on llama.cpp, one thread")


if __name__ == "__main__":
    main()
