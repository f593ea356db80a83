"""What is asked of the lab, checked before a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count, parse_tokens
from kvplan.lab.kinds import Kind, Sizes, find

MAX_PASSAGES: Final = 64
MAX_REQUESTS: Final = 256
MAX_TOKENS: Final = 1 << 20
MAX_COMPILE_S: Final = 86_400
FEWEST: Final = 64  # tokens of a text in which something is found or foretold


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Caches, lengths and counts; ``sizes`` has all of a cache but the tokens it is for."""

    kinds: tuple[Kind, ...]
    prompt: int
    output: int
    sizes: Sizes
    passages: int
    passage: int
    needle_lengths: tuple[int, ...]
    requests: int
    compile_s: float

    @property
    def longest(self) -> int:
        """The most tokens that one sequence has."""
        return max(self.prompt + self.output, self.passage, *self.needle_lengths, 0)

    @property
    def text_tokens(self) -> int:
        """Tokens of text that the prompt, the facts' surroundings and the batch are cut from."""
        own_ends = 4 * self.requests * self.sizes.block_size
        return max(self.prompt, *self.needle_lengths, self.prompt // 2 + own_ends)


def ask(
    *,
    caches: str | Sequence[str],
    prompt: int | str,
    output: int | str,
    budget: int | str,
    sinks: int,
    group: int,
    residual: int,
    block_size: int,
    passages: int,
    passage: int | str,
    needles: int | str | Sequence[int | str],
    requests: int,
    compile_s: float,
) -> Question:
    """The question of these flags.

    Raises:
        BadQuestion: a cache or number that cannot be read, or numbers that do not go together.
    """
    names = _listed(caches)
    sizes = Sizes(
        tokens=0,
        budget=parse_count(parse_tokens(budget), "--budget", MAX_TOKENS),
        sinks=sinks,
        group=parse_count(group, "--group", 1 << 10),
        residual=parse_count(residual, "--residual", 1 << 16),
        block_size=parse_count(block_size, "--block-size", 1 << 12),
    )
    _check(sizes)
    if not 0 <= passages <= MAX_PASSAGES:
        raise BadValue(f"--passages {passages} is not a number from 0 to {MAX_PASSAGES}.")
    lengths = tuple(parse_tokens(one) for one in _listed(needles).split(",", 16) if one.strip())
    return Question(
        kinds=tuple(find(names)),
        prompt=parse_count(parse_tokens(prompt), "--prompt", MAX_TOKENS),
        output=parse_count(parse_tokens(output), "--output", 1 << 16),
        sizes=sizes,
        passages=passages,
        passage=_enough(parse_tokens(passage), "--passage"),
        needle_lengths=tuple(_enough(length, "--needles") for length in lengths),
        requests=parse_count(requests, "--requests", MAX_REQUESTS),
        compile_s=_compile_s(compile_s),
    )


def _listed(given: int | str | Sequence[int | str]) -> str:
    """Several as a flag has them, ``192,384``."""
    return str(given) if isinstance(given, int | str) else ",".join(map(str, given))


def _check(sizes: Sizes) -> None:
    if not 0 <= sizes.sinks < sizes.budget:
        raise BadValue(f"--sinks {sizes.sinks} are not fewer than the {sizes.budget} of --budget.")
    if sizes.residual % sizes.group or sizes.group % 8:
        raise BadValue(
            f"--residual {sizes.residual} is no multiple of --group {sizes.group}, or that of 8.",
            "Keys are packed a group of tokens at a time.",
        )


def _compile_s(seconds: float) -> float:
    if not 0 <= seconds <= MAX_COMPILE_S:
        raise BadValue(f"--compile {seconds:g} is not from 0 to {MAX_COMPILE_S:,} seconds.")
    return float(seconds)


def _enough(tokens: int, flag: str) -> int:
    if not FEWEST <= tokens <= MAX_TOKENS:
        raise BadValue(f"{flag} {tokens} is not a number from {FEWEST} to {MAX_TOKENS:,}.")
    return tokens
