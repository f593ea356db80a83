"""Traffic that is drawn: arrivals, lengths, shared beginnings, chats of several turns, agents.

    prompt of turn k = prefix + own tokens of turns 0 … k + answers of turns 0 … k - 1

Without turns ``prompt`` is the whole prompt, the shared prefix included; with turns it is what the
user adds at each. The ids name every block of a conversation that a later prompt begins with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count, parse_tokens
from kvplan.simulation.arrivals import arrivals_s
from kvplan.simulation.lengths import Distribution, parse_distribution, sample_tokens
from kvplan.simulation.traces.columns import MOST_IDS, MOST_REQUESTS, MOST_TOKENS
from kvplan.simulation.traffic import Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

CHAT_BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What was asked, read."""

    requests: int
    prompt: Distribution
    output: Distribution
    shared_prefix: int
    prefixes: int
    turns: int
    think: Distribution


def synthetic(
    *,
    requests: int | str,
    prompt: str | int | Distribution,
    output: str | int | Distribution,
    rate: float | None = None,
    concurrency: int | None = None,
    arrivals: str = "poisson",
    cv: float = 1.0,
    shared_prefix: int | str = 0,
    prefixes: int | str = 1,
    turns: int | str = 1,
    think: str | float | Distribution = 0.0,
    seed: int = 0,
) -> Traffic:
    """Requests that are drawn, the same for the same seed.

    Args:
        requests: how many; with turns the last conversation may be cut short.
        prompt: lengths of prompts, or with turns of what a user says.
        output: lengths of answers.
        rate: conversations that begin a second (an open loop).
        concurrency: requests that a client keeps open (a closed loop), instead of a rate.
        arrivals: poisson, gamma (with ``cv``) or constant.
        cv: the deviation of a gamma process's pauses over their mean.
        shared_prefix: tokens with which all prompts of a kind begin.
        prefixes: how many kinds there are, each conversation of one.
        turns: of a conversation.
        think: seconds between an answer and the next turn.
        seed: of all draws.

    Raises:
        BadValue: a value that cannot be read, neither or both of rate and concurrency.
    """
    import numpy as np

    if (rate is None) == (concurrency is None):
        raise BadValue("Traffic needs either --rate or --concurrency.", "As in --rate 2.")
    asked = _read(requests, prompt, output, shared_prefix, prefixes, turns, think)
    rng = np.random.default_rng(seed)
    conversations = -(-asked.requests // asked.turns)
    begins = (
        np.zeros(conversations)
        if rate is None
        else arrivals_s(arrivals, rate, conversations, rng, cv)
    )
    made = _single(asked, begins, rng) if asked.turns == 1 else _chats(asked, begins, rng)
    if concurrency is None:
        return made
    return replace(made, max_in_flight=parse_count(concurrency, "--concurrency", MOST_REQUESTS))


def _read(
    requests: int | str,
    prompt: str | int | Distribution,
    output: str | int | Distribution,
    shared_prefix: int | str,
    prefixes: int | str,
    turns: int | str,
    think: str | float | Distribution,
) -> _Asked:
    prefix = parse_tokens(shared_prefix)
    if prefix >= MOST_TOKENS:
        raise BadValue(f"A shared prefix of {prefix:,} tokens is longer than any prompt.")
    return _Asked(
        requests=parse_count(requests, "--requests", MOST_REQUESTS),
        prompt=parse_distribution(prompt, "--prompt"),
        output=parse_distribution(output, "--output"),
        shared_prefix=prefix,
        prefixes=parse_count(prefixes, "--prefixes", MOST_REQUESTS),
        turns=parse_count(turns, "--turns", 10_000),
        think=parse_distribution(think, "--think"),
    )


def _single(asked: _Asked, begins: NDArray[np.float64], rng: np.random.Generator) -> Traffic:
    """Requests of one turn: a prefix that is shared is one block as long as itself."""
    import numpy as np

    count = asked.requests
    prompts = sample_tokens(asked.prompt, rng, count)
    longer = np.maximum(prompts, asked.shared_prefix + 1)
    lengthened = int((longer > prompts).sum())
    shares = asked.shared_prefix > 0
    ids = rng.integers(0, asked.prefixes, count) if shares else np.empty(0, np.int64)
    return Traffic(
        arrival_s=begins,
        prompt_tokens=longer,
        output_tokens=sample_tokens(asked.output, rng, count),
        after=np.full(count, -1, np.int64),
        think_s=np.zeros(count),
        priority=np.zeros(count, np.int64),
        hash_ids=ids,
        hash_starts=np.arange(count + 1) if shares else np.zeros(count + 1, np.int64),
        hash_block=asked.shared_prefix or CHAT_BLOCK,
        source="synthetic",
        is_drawn=True,
        notes=_told(lengthened),
    )


def _told(lengthened: int) -> tuple[str, ...]:
    if not lengthened:
        return ()
    what = "were drawn shorter than the shared prefix: lengthened to it and one token."
    return (f"{lengthened:,} prompts {what}",)


def _chats(asked: _Asked, begins: NDArray[np.float64], rng: np.random.Generator) -> Traffic:
    """Conversations turn by turn: rows are conversations, columns turns, until they are sorted."""
    import numpy as np

    shape = len(begins), asked.turns
    count = shape[0] * shape[1]
    said = sample_tokens(asked.prompt, rng, count).reshape(shape)
    answers = sample_tokens(asked.output, rng, count).reshape(shape)
    grown = np.cumsum(said + answers, axis=1)
    prompts = asked.shared_prefix + grown - answers
    if int(prompts.max()) > MOST_TOKENS:
        raise BadValue(f"The last turn has {int(prompts.max()):,} tokens: longer than any prompt.")
    pauses = np.asarray(asked.think.sample(rng, count)).reshape(shape)
    pauses[:, 0] = 0.0
    # Where no one waits for an answer, the turns would stand so; order of sending is by this.
    nominal = begins[:, None] + np.cumsum(pauses, axis=1)
    order = np.argsort(nominal.ravel(), kind="stable")[: asked.requests]
    place = np.full(count, -1, np.int64)
    place[order] = np.arange(len(order))
    before = np.where(order % asked.turns == 0, -1, place[order - 1])
    ids, starts = _ids(asked, prompts.ravel()[order], order // asked.turns, rng, shape[0])
    return Traffic(
        arrival_s=nominal.ravel()[order],
        prompt_tokens=prompts.ravel()[order],
        output_tokens=answers.ravel()[order],
        after=before,
        think_s=pauses.ravel()[order],
        priority=np.zeros(len(order), np.int64),
        hash_ids=ids,
        hash_starts=starts,
        hash_block=CHAT_BLOCK,
        source="synthetic",
        is_drawn=True,
    )


def _ids(
    asked: _Asked, prompts: Ints, conversation: Ints, rng: np.random.Generator, conversations: int
) -> tuple[Ints, Ints]:
    """Ids of the full blocks: a kind's in its prefix, behind it the conversation's own.

    Raises:
        BadValue: more ids than can be held.
    """
    import numpy as np

    counts = prompts // CHAT_BLOCK
    starts = np.concatenate([[0], np.cumsum(counts)])
    if starts[-1] > MOST_IDS:
        raise BadValue(
            f"These conversations have {int(starts[-1]):,} blocks, more than {MOST_IDS:,}.",
            "Ask for fewer requests or turns.",
        )
    shared = asked.shared_prefix // CHAT_BLOCK
    longest = int(counts.max(initial=0))
    kind = rng.integers(0, asked.prefixes, conversations)[conversation]
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    own = np.repeat((asked.prefixes + conversation) * longest, counts) + place
    prefix = np.repeat(kind * longest, counts) + place
    return np.where(place < shared, prefix, own), starts
