"""Simulated latency beside published closed loops of models that no rate was fitted to.

    python -m tools.accuracy_latency [SAMPLE]

Each question is run as its source ran it: ten prompts a client, lengths drawn from 0.8 to 1 of the
nominal ones where the source draws them, one rank with its share of the clients. Rows, their split
and their plans are those of ``tools.speed_rows`` and ``tools.speed_cases``.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median
from typing import Any, Final, NamedTuple

from kvplan.core.errors import KvplanError
from tools.markdown import markdown_table
from tools.speed_cases import case_of
from tools.speed_data import data
from tools.speed_names import MIXTURES, SOURCE_OF_LOOPS
from tools.speed_rows import Row
from tools.speed_simulated import simulated_s

SEED: Final = 7
KINDS: Final[dict[str, Callable[[Row], bool]]] = {
    "dense": lambda row: row.group not in MIXTURES,
    "mixtures": lambda row: row.group in MIXTURES,
    "vllm": lambda row: row.engine == "vllm",
    "sglang": lambda row: row.engine == "sglang",
    "tensorrt-llm": lambda row: row.engine == "tensorrt-llm",
    "lengths drawn": lambda row: row.drawn,
    "lengths equal": lambda row: not row.drawn,
}


class Compared(NamedTuple):
    """A question, and seconds measured and simulated by metric."""

    row: Row
    measured: dict[str, float]
    simulated: dict[str, float]

    def error(self, metric: str) -> float | None:
        """Of the simulated over the measured; None where it was not measured."""
        if metric not in self.measured:
            return None
        return self.simulated[metric] / self.measured[metric] - 1


def questions(sample: int | None = None) -> list[tuple[Row, dict[str, float]]]:
    """The loops of models kept aside, TPOT and TTFT of one run together; all, or a draw of them."""
    found = [case.row for case in data().cases]
    both = [(row, measured) for row, measured in answered(found) if row.group in data().aside]
    if sample is None or len(both) <= sample:
        return both
    return random.Random(SEED).sample(both, sample)


def answered(found: Sequence[Row]) -> Iterator[tuple[Row, dict[str, float]]]:
    """The closed loops among rows, with what was measured of each by metric."""
    answers: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    first: dict[tuple[Any, ...], Row] = {}
    for row in found:
        if row.source == SOURCE_OF_LOOPS and row.kind in ("loop", "single"):
            key = tuple(row._replace(place=0, metric="", value=0.0))
            answers[key][row.metric] = row.value
            first.setdefault(key, row)
    yield from ((first[key], answers[key]) for key in first)


def compared(asked: Sequence[tuple[Row, dict[str, float]]]) -> Iterator[Compared]:
    """Every question that can be planned and whose clients fit, simulated."""
    for row, measured in asked:
        case = case_of(row)
        if isinstance(case, str):
            continue
        try:
            simulated = simulated_s(case)
        except KvplanError:
            continue
        if simulated is not None:
            yield Compared(row, measured, simulated)


def table(found: Sequence[Compared], metric: str) -> Iterator[str]:
    """A line a kind: count, median and mean of the error's size, median of the error."""
    for name, belongs in KINDS.items():
        errors = [e for one in found if belongs(one.row) if (e := one.error(metric)) is not None]
        if errors:
            sizes = [abs(error) for error in errors]
            yield (
                f"{metric:7} {name:13} {len(errors):4}  median |error| {median(sizes):6.1%}  "
                f"mean {mean(sizes):6.1%}  median error {median(errors):+7.1%}"
            )


def section() -> str:
    """The accuracy page's section: all of the questions, by kind."""
    found = list(compared(questions()))
    lines = []
    for name, belongs in KINDS.items():
        cells = [name]
        for metric in ("tpot_s", "ttft_s"):
            errors = [e for c in found if belongs(c.row) if (e := c.error(metric)) is not None]
            sizes = [abs(error) for error in errors]
            cells += [f"{len(errors):,}", f"{median(sizes):.0%}", f"{median(errors):+.0%}"]
        lines.append(cells)
    columns = ("closed loops", "runs", "each token", "bias", "runs", "first token", "bias")
    return f"""## Latency, simulated

Published closed loops of models that no rate was fitted to, all {len(found)} of them:
`kvplan simulate` with as many clients, ten requests of each, lengths drawn as the source draws
them, and the flags of its own scripts where they are public. Medians of the error's size, and of
the error itself.

{markdown_table(columns, lines)}

Servers are simulated with the flags that they had: InferenceX's scripts and aiconfigurator's
generator are public (`tools/speed_recipes.py`; the second leaves a step room for one prompt and
1,500 tokens, which decides who meets whom). Dense models kept aside have equal lengths alone, and
those of one run (Llama 3.1 8B on TensorRT-LLM) wait longer the longer the answers are, 0.1 s after
128 tokens and 0.6 s after 512 with eight clients. That is what clients see who are one more than
the places of a server: simulated so, runs of 8 and 16 clients are off by 9% and 13% in the median
(60% and 36% as stated). Nothing that a row states says so, and the table takes them as stated.

Dense models with drawn lengths are all Llama 3 70B, which calibrates: the simulated first token is
off by 8% in the median there, and by what the table of models left out says where no rate has seen
it.

`python -m benchmarks.bench_latency` runs AISimulate on the same rows.
"""


def main() -> int:
    """Prints both metrics."""
    sample = int(sys.argv[1]) if len(sys.argv) > 1 else None
    asked = questions(sample)
    found = list(compared(asked))
    print(f"{len(found)} of {len(asked)} questions of models kept aside")
    for metric in ("tpot_s", "ttft_s"):
        print("\n".join(table(found, metric)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
