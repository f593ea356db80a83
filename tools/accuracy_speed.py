"""The accuracy page's section on speed: measured on models that no constant was fitted to."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from kvplan.planning.speed import estimate
from kvplan.planning.speed.calibration import family_of, table
from tools.markdown import markdown_table
from tools.speed_cases import Case, answered
from tools.speed_data import WITHOUT, data
from tools.speed_rows import REFERENCE, is_first_in_loop

PEERS: Final = REFERENCE / "peers.json"
BIG_THREE: Final = frozenset({"h100-sxm-80gb", "h200", "a100-sxm-80gb"})


class Told(NamedTuple):
    """A row, what kvplan answers, and the half width that it states."""

    case: Case
    answer: float
    band: float

    @property
    def off(self) -> float:
        """The answer over the measurement, less one."""
        return self.answer / self.case.row.value - 1

    @property
    def inside(self) -> bool:
        """Whether the measurement is in the band."""
        factor = self.answer / self.case.row.value
        return 1 / (1 + self.band) <= factor <= 1 + self.band


@cache
def told() -> tuple[Told, ...]:
    """All rows of the models kept aside."""
    found = data()
    rows = []
    for case in found.cases:
        if case.row.group in found.aside:
            guess = estimate(case.plan)
            assert guess is not None
            rows.append(Told(case, answered(case), guess.error))
    return tuple(rows)


def is_loop(row: Told) -> bool:
    """A token's time of clients that wait for their answers."""
    return row.case.row.kind == "loop" and row.case.row.metric == "tpot_s"


def is_dense_big(row: Told) -> bool:
    """A dense model on the three usual cards."""
    return is_loop(row) and not row.case.mixed and row.case.row.device in BIG_THREE


def is_other(row: Told) -> bool:
    """A mixture, or another card."""
    return is_loop(row) and not is_dense_big(row)


def is_single(row: Told) -> bool:
    """One request at a time."""
    return row.case.row.kind == "single" and row.case.row.metric == "tpot_s"


def is_full(row: Told) -> bool:
    """The most that a dense model in fp8 serves."""
    return (
        row.case.row.kind == "queued" and not row.case.mixed and row.case.row.quantization == "fp8"
    )


def is_first(row: Told) -> bool:
    """A first token's time of clients that wait for their answers."""
    return is_first_in_loop(row.case.row)


def is_prefill(row: Told) -> bool:
    """One prompt that has a server to itself."""
    return row.case.row.kind == "prefill"


def is_speed(row: Told) -> bool:
    """What the stated band is for: tokens, in time or in rate."""
    return row.case.row.metric != "ttft_s"


class Figures(NamedTuple):
    """Relative errors of some rows."""

    rows: int
    median: float
    mean: float
    near: float
    worst: float
    inside: float


def figures(chosen: Iterable[Told]) -> Figures | None:
    """The figures of rows; None of none."""
    rows = list(chosen)
    if not rows:
        return None
    off = sorted(abs(row.off) for row in rows)
    return Figures(
        len(rows),
        statistics.median(off),
        statistics.fmean(off),
        sum(x <= 0.1 for x in off) / len(off),
        off[-1],
        sum(row.inside for row in rows) / len(rows),
    )


def of(test: Callable[[Told], bool]) -> Figures:
    """The figures of the rows that pass a test."""
    found = figures(row for row in told() if test(row))
    assert found is not None
    return found


def section() -> str:
    """The page's section."""
    said = table()
    return "\n\n".join(
        [
            "## Speed, on models kept aside",
            _how(said),
            markdown_table(("what", "asked", "reached", "rows"), _targets(), right=3),
            _band(),
            "By card, engine and model (time per output token of clients in a loop):",
            markdown_table(
                ("card", "engine", "model", "rows", "median", "mean", "high or low"),
                _groups(),
                right=3,
            ),
            *_peers(),
            UNSEEN,
            markdown_table(
                ("left out", "engine", "card", "rows", "a token", "bias", "first token", "bias"),
                _unseen(),
                right=3,
            ),
            MISSES,
            "What was left out, and why:",
            markdown_table(("reason", "rows"), _left(said), right=1),
        ]
    )


def _how(said: dict[str, Any]) -> str:
    aside = ", ".join(said["aside"])
    return (
        f"7,966 published figures; {sum(said['left_out'].values()):,} are left out, counted below. "
        f"A third of the models is kept aside, drawn with seed {said['seed']} (one of every three "
        f"with as many rows, dense models and mixtures apart): {aside}. "
        f"{said['rows']:,} rows of the other models made the constants in `data/speed.json` "
        "(`python -m tools.calibrate_speed`); the figures below are of rows kept aside. Constants "
        "were fitted to calibration rows alone. But rules of cleaning, some priors and the form of "
        "some rules were chosen with errors on kept-aside rows in view, over some twenty-six "
        "variants; what fits that leave a calibration model out are off by stands below."
    )


def _targets() -> Iterator[tuple[str, str, str, str]]:
    dense, other, single, full = of(is_dense_big), of(is_other), of(is_single), of(is_full)
    yield (
        "time per token, dense, H100, H200, A100",
        "median 6%, mean 10%",
        f"median {dense.median:.1%}, mean {dense.mean:.1%}",
        f"{dense.rows}",
    )
    yield (
        "time per token, mixtures and other cards",
        "median 12%, mean 30%",
        f"median {other.median:.1%}, mean {other.mean:.1%}",
        f"{other.rows}",
    )
    yield (
        "one request at a time, within 10%",
        "80% of rows",
        f"{single.near:.0%} (median {single.median:.1%})",
        f"{single.rows}",
    )
    first = of(is_first)
    yield (
        "time to first token in a loop, by the formula",
        "– (the simulator's)",
        f"median {first.median:.0%}, mean {first.mean:.0%}",
        f"{first.rows}",
    )
    alone = of(is_prefill)
    yield (
        "a prompt alone, most on llama.cpp",
        "–",
        f"median {alone.median:.0%}, mean {alone.mean:.0%}",
        f"{alone.rows}",
    )
    yield (
        "maximum throughput, dense fp8",
        "mean 4%, worst 9%",
        f"mean {full.mean:.1%}, worst {full.worst:.0%}",
        f"{full.rows}",
    )


def _band() -> str:
    found = of(is_speed)
    said = table()["errors"]
    return (
        f"The stated band (a factor of {1 + said['dense']:.2f} for dense models, "
        f"{1 + said['mixture']:.2f} for mixtures, wider for engines and cards without "
        f"measurements) holds {found.inside:.0%} of the {found.rows} rows kept aside; at least "
        "85% are asked. It comes from fits that each leave one calibration model out."
    )


def _groups() -> Iterator[tuple[str, ...]]:
    groups: dict[tuple[str, str, str], list[Told]] = defaultdict(list)
    for row in filter(is_loop, told()):
        one = row.case.row
        groups[(one.device, one.engine, one.group)].append(row)
    for name, rows in sorted(groups.items()):
        found = figures(rows)
        assert found is not None
        lean = statistics.median(row.off for row in rows)
        yield (*name, f"{found.rows}", f"{found.median:.1%}", f"{found.mean:.1%}", f"{lean:+.1%}")


def _peers() -> list[str]:
    """The peers on the same rows, where the benchmark was run."""
    if not PEERS.exists():
        return []
    found = json.loads(PEERS.read_text(encoding="utf-8"))
    ours = {row.case.row.place: row for row in told()}
    lines = []
    for name, peer in found["peers"].items():
        answers = {int(place): value for place, value in peer["answers"].items()}
        both = [ours[place] for place in answers if place in ours]
        if not both:
            continue
        for what, test in (("dense", is_dense_big), ("mixtures, other cards", is_other)):
            rows = [row for row in both if test(row)]
            if not rows:
                continue
            its = sorted(abs(answers[row.case.row.place] / row.case.row.value - 1) for row in rows)
            own = figures(rows)
            assert own is not None
            lines.append(
                (
                    f"{name} {peer['version']}",
                    what,
                    f"{len(rows)}",
                    f"{statistics.median(its):.1%} / {statistics.fmean(its):.1%}",
                    f"{own.median:.1%} / {own.mean:.1%}",
                )
            )
    if not lines:
        return []
    return [
        BESIDE,
        markdown_table(("tool", "rows of", "rows", "its error", "kvplan's"), lines, right=2),
    ]


def _unseen() -> Iterator[tuple[str, ...]]:
    """What fits without a calibration model are off by on it, a line an engine and a card."""
    for model, found in json.loads(WITHOUT.read_text(encoding="utf-8")).items():
        groups: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
        for one in found:
            groups[one["engine"], one["device"]][one["metric"]] = one
        for name, by in sorted(groups.items()):
            rows = max(one["rows"] for one in by.values())
            yield (model, *name, f"{rows}", *_cells(by.get("tpot_s")), *_cells(by.get("ttft_s")))


def _cells(one: dict[str, Any] | None) -> tuple[str, str]:
    return (f"{one['median']:.0%}", f"{one['lean']:+.0%}") if one else ("–", "–")


UNSEEN: Final = (
    "The models that calibrate most, each left out of a fit of its own (`python -m "
    "tools.calibrate_speed --without MODEL`): what a new model may be off by, the median of the "
    "error's size and of the error. Without Llama 3 70B no dense model is left on Blackwell, and "
    "none in FP4; without Qwen3 32B hardly one on SGLang or behind Dynamo, whose front end is "
    "faster than the engines' own: first tokens are then far off."
)
BESIDE: Final = (
    "Beside others, on the kept-aside rows that they answer (`python -m benchmarks.bench_speed`; "
    "median / mean error of the time per token): a drawn sample, as many as they answered in seven "
    "minutes. Their tables hold operators measured on these cards. They were asked with the mean "
    "lengths and their default schedulers; on a sample of its own aisimulate's authors report 7% / "
    "13% for dense models."
)
MISSES: Final = """Misses, explained:

- **Drafts that are not stated.** Where one question has answers more than 20% apart (DeepSeek-R1
  on B200: 5.4 and 10.3 ms with the same card, engine, version and clients) both are left out;
  where only the faster one is published it is still among the rows.
- **Latent attention was kept aside as a whole** (DeepSeek V3, Kimi K2): no calibration model has
  it, so its kernels are counted by a rule (`looks.py`, MORE_KERNELS) and not by measurement.
- **Experts dealt out whole** make a step wait for the fullest rank. How uneven routers are is
  fitted to those that nothing keeps even (Qwen3, gpt-oss, Llama 4); those with a correction for
  each expert's score (DeepSeek V3, Kimi, GLM) count as even, for what their reports say of them:
  no calibration model is served so, and the choice was made when DeepSeek V3's errors had been
  seen.
- **A run that stalls** (SGLang on B200, 2025-11-10) has first tokens of some seven seconds however
  many clients there are; the rule that leaves them out, and that each model counts once in the
  band, were made with kept-aside rows in view too.
- **SGLang at 350 to 512 clients** takes longer a token than the card does; we suspect its
  tokenizer processes (its rows end near 20,000 tokens a second), which no calibration row shows.
- **Maximum throughput** is asked with the settings of the pages' own commands
  (`tools/speed_bench.py`: the cache's share, the largest batch, tokens of a step, requests of a
  run, captured sizes; attention ranks and dealt experts for mixtures). Prompts of 128 tokens are
  answered too fast, as what a request costs the host is not counted; long answers of the smallest
  model too slow.
- **Experts in int4** (Kimi K2 on B200) are read slower than in NVFP4, by a quarter; a factor for
  weights that are widened in the kernel was tried, and the calibration models (gpt-oss on Hopper)
  do not ask for one.
- **Time to first token** in a loop depends on how clients move together; `kvplan simulate` steps
  through it, the formula here does not."""


def _left(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    merged: Counter[str] = Counter()
    for reason, count in said["left_out"].items():
        merged[reason.partition(" (")[0]] += count
    for reason, count in merged.most_common():
        yield reason, f"{count:,}"


__all__ = ["family_of", "figures", "of", "section", "told"]
