"""A batch with one system prompt, with and without reuse, beside the simulator and each alone."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.core.formats import parse_format
from kvplan.lab.batch import Asked, serve, simulated
from kvplan.lab.engine import generate
from kvplan.lab.figures import Shared, Side
from kvplan.lab.kinds import KINDS
from kvplan.lab.layouts import Paged
from kvplan.lab.loading import Loaded
from kvplan.lab.question import Question


def share(loaded: Loaded, question: Question, tokens: Sequence[int]) -> Shared:
    """Requests whose first ``prompt // 2`` tokens are one text, each with an end of its own.

    Raises:
        BadValue: a model whose layers pages do not hold.
    """
    asked = _asked(question, tokens)
    alone = _alone(loaded, question, asked)
    return Shared(
        requests=question.requests,
        shared_tokens=len(asked.shared),
        prompt_tokens=sum(len(asked.prompt(number)) for number in range(question.requests)),
        output_tokens=asked.output,
        block_size=question.sizes.block_size,
        sides=tuple(_side(loaded, question, asked, alone, reuse) for reuse in (False, True)),
    )


def _asked(question: Question, tokens: Sequence[int]) -> Asked:
    """The ends have different lengths, so that none of them fills a block with another's."""
    shared, size = question.prompt // 2, question.sizes.block_size
    own = [
        tuple(tokens[shared + number * 2 * size :][: size + number % size])
        for number in range(question.requests)
    ]
    return Asked(shared=tuple(tokens[:shared]), own=tuple(own), output=min(question.output, size))


def _side(
    loaded: Loaded,
    question: Question,
    asked: Asked,
    alone: tuple[tuple[int, ...], ...],
    reuse: bool,
) -> Side:
    size = question.sizes.block_size
    served = serve(loaded, asked, block_size=size, reuse=reuse)
    same = simulated(asked, served, reuse=reuse)
    curve = loaded.described.curve(parse_format(loaded.dtype))
    block = Paged(curve=curve, num_blocks=1, block_size=size).block_bytes
    return Side(
        reuse=reuse,
        computed_tokens=served.computed,
        reused_tokens=sum(served.reused),
        peak_blocks=served.peak_blocks,
        peak_bytes=served.peak_blocks * block,
        first_tokens_s=served.first_s,
        simulated_computed_tokens=sum(tokens for tokens, _, _ in same.steps),
        simulated_reused_tokens=sum(int(row["hit"] or 0) for row in same.results),
        simulated_peak_blocks=served.num_blocks - 1 - min(free for _, _, free in same.steps),
        equal_steps=served.steps == same.steps,
        identical_output=served.answers == alone,
    )


def _alone(loaded: Loaded, question: Question, asked: Asked) -> tuple[tuple[int, ...], ...]:
    """Each request by itself through a full cache."""
    full = KINDS["full"]
    return tuple(
        generate(
            loaded, asked.prompt(number), full.make(loaded.config, question.sizes), asked.output
        ).tokens
        for number in range(len(asked.own))
    )
