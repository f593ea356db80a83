"""Fewer tokens by asking for less or by keeping less: what each loses of the full answer.

    the full prompt, full cache      an answer
    the prompt's last tokens alone   ┐ read that answer: is each of its tokens still the likeliest?
    the full prompt, evicted cache   ┘

All have the same number of tokens to look at when the answer begins.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kvplan.lab.engine import generate
from kvplan.lab.figures import Lost
from kvplan.lab.kinds import KINDS, Kind, Sizes
from kvplan.lab.loading import Loaded
from kvplan.lab.quality import Make, Read, read

EVICTING = ("sliding", "h2o", "snapkv")
SHORTENED = "shortened prompt"


def compare(
    loaded: Loaded, prompts: Sequence[Sequence[int]], output: int, sizes: Sizes
) -> tuple[Lost, ...]:
    """Each way on each prompt, beside the full cache itself."""
    full = KINDS["full"]
    ways: dict[str, list[Read]] = {}
    for prompt in prompts:
        answer = generate(loaded, prompt, _maker(loaded, full, sizes)(0), output).tokens
        ways.setdefault("full", []).extend(_read(loaded, full, prompt, answer, sizes))
        short = prompt[-sizes.budget :]
        ways.setdefault(SHORTENED, []).extend(_read(loaded, full, short, answer, sizes))
        for name in EVICTING:
            found = _read(loaded, KINDS[name], prompt, answer, sizes)
            ways.setdefault(name, []).extend(found)
    longest = max(map(len, prompts))
    return tuple(
        Lost(
            way=way,
            kept_tokens=longest if way == "full" else min(longest, sizes.budget),
            agreement=statistics.fmean(row.is_first for row in rows),
            perplexity=math.exp(-statistics.fmean(row.likelihood for row in rows)),
        )
        for way, rows in ways.items()
    )


def _maker(loaded: Loaded, kind: Kind, sizes: Sizes) -> Make:
    return lambda tokens: kind.make(loaded.config, sizes)


def _read(
    loaded: Loaded, kind: Kind, prompt: Sequence[int], answer: Sequence[int], sizes: Sizes
) -> list[Read]:
    """The answer a token at a time, as it was made."""
    return read(loaded, prompt, answer, _maker(loaded, kind, sizes), kind.observed, chunk=1)
