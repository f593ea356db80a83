"""The contract of a simulated server: it takes requests, says what its next step computes, ends it.

    loop:   add(request) ──► plan_step(now) ──► [time of the batch] ──► end_step(now) ──► finished
            ▲                                                                               │
            └───────────────────────────── client, router ◄─────────────────────────────────┘

A server owns its queues and its cache and knows no clock; what a step takes is the loop's to say.
``check_integrity`` holds after every call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kvplan.core.errors import BadQuestion
from kvplan.core.step import Chunk

NEVER = float("nan")


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """One request on its way: what it asks, what is computed of it, and when things came.

    ``ids`` name the blocks of ``id_tokens`` tokens that it begins with, over its prompt and as much
    of its answer as they reach. ``computed`` tokens are in the cache; ``generated`` are out.
    ``named`` is how many of its tokens they reach. ``cuts`` are lengths at which its own tokens
    entered a tree, and can be found again.
    """

    index: int
    prompt: int
    output: int
    ids: Sequence[int] = ()
    id_tokens: int = 1
    priority: int = 0
    computed: int = 0
    generated: int = 0
    hit: int = 0
    preemptions: int = 0
    arrived_s: float = NEVER
    admitted_s: float = NEVER
    first_token_s: float = NEVER
    finished_s: float = NEVER
    rejected: bool = False
    named: int = 0
    cuts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.named = self.named or min(len(self.ids) * self.id_tokens, self.prompt)

    @property
    def known(self) -> int:
        """Tokens that exist: the prompt and what was generated."""
        return self.prompt + self.generated

    @property
    def remaining(self) -> int:
        """Tokens of the answer that are still to come."""
        return self.output - self.generated

    @property
    def left(self) -> int:
        """Known tokens that are not in the cache; 1 while it decodes."""
        return self.known - self.computed

    @property
    def done(self) -> bool:
        """Whether the answer is whole."""
        return self.generated >= self.output


class Segment(NamedTuple):
    """A run of tokens that are reused whole or not at all: who they are, and how many."""

    name: Hashable
    tokens: int


def segments(request: Request, tokens: int, page: int = 1) -> list[Segment]:
    """The first ``tokens`` of a request as named runs, each a multiple of ``page``.

    Whole blocks that ids name can be shared, the last one as far as it goes; a part of one is
    left out. What comes after them is the request's own, cut where it was cut before.
    """
    found: list[Segment] = []
    start = 0
    for place, name in enumerate(request.ids):
        end = min((place + 1) * request.id_tokens, request.named)
        if end > tokens:
            return found
        run = end // page * page - start
        if run > 0:
            found.append(Segment(name, run))
            start += run
    most = tokens // page * page
    for end in [*(cut for cut in request.cuts if start < cut < most), most]:
        if end > start:
            found.append(Segment(("own", request.index, start), end - start))
            start = end
    return found


class Batch(NamedTuple):
    """What a step computes: a token at each of ``contexts``, and chunks of prompts.

    ``waits_s`` is what the step waits for before it computes, ``loads_s`` what comes over a link
    meanwhile: it lasts ``waits_s`` + the longer of computing and loading.
    """

    contexts: Sequence[int]
    chunks: Sequence[Chunk]
    waits_s: float = 0.0
    loads_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Counts:
    """What a server has done since the start; the tokens are those of prompts."""

    queried_tokens: int = 0
    hit_tokens: int = 0
    computed_tokens: int = 0
    recomputed_tokens: int = 0
    evicted_blocks: int = 0
    preemptions: int = 0
    host_hit_tokens: int = 0
    moved_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Server(ABC):
    """One copy of an engine.

    ``admitted`` are the requests that the step under way scheduled for the first time; the loop
    writes down when that was, and for ``begun`` when their first token was out. ``gave_up`` are
    those that ran and will never end.
    """

    waiting: list[Request] = field(default_factory=list)
    running: list[Request] = field(default_factory=list)
    admitted: list[Request] = field(default_factory=list)
    gave_up: list[Request] = field(default_factory=list)
    begun: list[Request] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    @abstractmethod
    def refuses(self, request: Request) -> str:
        """Why it can never run here; empty where it can."""

    @abstractmethod
    def plan_step(self) -> Batch | None:
        """What the next step computes, admitted and preempted for; None where nothing can run."""

    @abstractmethod
    def end_step(self) -> list[Request]:
        """Ends the step that was planned: the requests that it finished."""

    @property
    @abstractmethod
    def num_blocks(self) -> int:
        """What the pool has, in the unit that the engine hands out."""

    @property
    @abstractmethod
    def used_blocks(self) -> int:
        """Those that a request holds; what is only kept for later is free."""

    @abstractmethod
    def check_integrity(self) -> None:
        """Raises AssertionError where what is held and what is free do not add up."""

    def add(self, request: Request) -> None:
        """A request joins the queue; it is one that the server does not refuse."""
        self.waiting.append(request)

    def take_over(self, request: Request) -> None:
        """A request whose prompt was computed elsewhere and whose cache has come.

        Raises:
            BadQuestion: the engine cannot, as it is modelled here.
        """
        raise BadQuestion(f"{type(self).__name__} takes no cache from another server.")

    def advance(self, chunks: Iterable[tuple[Request, int]]) -> None:
        """Each that runs has computed its chunk or, once it answers, its next token."""
        chunked = dict(chunks)
        for request in self.running:
            length = chunked.get(request, 1 if request.generated else 0)
            request.computed += length
            self.counts.computed_tokens += length if request in chunked else 0
            if length and not request.left:
                self.emit(request)

    def emit(self, request: Request) -> None:
        """A token of its answer is out."""
        request.generated += 1
        if request.generated == 1:
            self.begun.append(request)

    def quiet_steps(self) -> int:
        """Steps like the planned one that come before it, as far as nothing but lengths changes.

        Of a planned step that decodes alone: nobody ends, nobody enters, nobody gives way.
        """
        return 0

    def skip(self, steps: int) -> None:
        """So many steps are over, the planned one not among them."""
        raise NotImplementedError

    def cached_tokens(self, request: Request) -> int:
        """Tokens of a prompt that it would find here; it changes nothing."""
        return 0

    def extras(self) -> dict[str, float]:
        """Figures that this engine alone has."""
        return {}

    @property
    def num_waiting(self) -> int:
        """Requests that are here and do not run."""
        return len(self.waiting)

    @property
    def load(self) -> int:
        """Requests that are here."""
        return self.num_waiting + len(self.running)
