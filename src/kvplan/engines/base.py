"""The contract of an engine: a model on a node under its flags, to a plan.

    Engine.plan(model, node, asked) → EnginePlan(launch, ledger, pool, …)

An engine knows its flags in their own spelling, its defaults by version, and how it spends a card.
It never guesses in silence: what it assumed is a warning, what it cannot model is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from kvplan.core.device import Device
from kvplan.core.launch import Launch
from kvplan.core.ledger import Ledger, Term
from kvplan.core.measured import Calibration
from kvplan.core.model import Model
from kvplan.core.pool import Pool
from kvplan.core.tier import Tier
from kvplan.engines.flags import FlagTable
from kvplan.engines.names import flags_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """``gpus`` devices of one kind; ``memory_bytes`` is one device's as the driver reports it.

    ``free_bytes`` is what it has free at the start, where other processes hold some of it.
    """

    device: Device
    gpus: int
    memory_bytes: int
    free_bytes: int | None = None

    @property
    def available_bytes(self) -> int:
        """What a start finds free of one device."""
        return self.memory_bytes if self.free_bytes is None else self.free_bytes

    @property
    def others(self) -> tuple[Term, ...]:
        """The ledger's term of other processes, where there are any."""
        held = self.memory_bytes - self.available_bytes
        if held <= 0:
            return ()
        said = "not free at the start (--free-memory)"
        return (Term(name="other_processes", num_bytes=held, source=said, inside_budget=False),)

    @property
    def framework_memory_bytes(self) -> int:
        """What a framework sees of one device: the observed total, else the driver's."""
        seen, reported = self.device.framework_memory_bytes, self.device.memory_bytes
        return seen if seen is not None and self.memory_bytes == reported else self.memory_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks of an engine beside the model and the node.

    ``flags`` has only those given, in the engine's spelling, already parsed by its flag table.
    ``pool_bytes`` takes one rank's pool as given (``--kv-pool``); ``weights_bytes`` the whole
    model's weights. ``calibration`` is what was measured of such a server.
    """

    context: int
    concurrency: int | None = None
    version: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    pool_bytes: int | None = None
    weights_bytes: int | None = None
    shared_prefix: int = 0
    calibration: Calibration | None = None

    def with_flags(self, **changed: Any) -> Asked:
        """The same with some flags changed: ``max_model_len=4096``."""
        return replace(self, flags={**self.flags, **flags_of(changed)})


class Capacity(NamedTuple):
    """How many sequences run at once and what stops more: ``pool``, ``max_num_seqs``, ``state``."""

    sequences: int
    limited_by: str


class Change(NamedTuple):
    """A lever: what to ask instead, and what a person should know of it."""

    name: str
    flag: str
    model: Model
    node: Node
    asked: Asked
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePlan(ABC):
    """What an engine does with a model on a node.

    ``starts`` is the engine's own start-up verdict and ``reason`` the first term that breaks it,
    with the arithmetic and the nearest values that work. ``prints`` are the lines to hold against
    its log. ``command`` starts it so. ``replicas`` are independent copies (data parallel).
    """

    engine: str
    version: str | None
    model: Model
    node: Node
    asked: Asked
    launch: Launch
    ledger: Ledger
    pool: Pool
    starts: bool
    reason: str | None = None
    prints: tuple[str, ...] = ()
    command: str = ""
    replicas: int = 1
    warnings: tuple[str, ...] = ()

    @abstractmethod
    def capacity(self, context: int) -> Capacity:
        """Sequences of so many tokens that run at once, over all replicas."""

    def with_flag(self, name: str, flag: str, value: Any, note: str = "") -> Change:
        """The lever that starts it with one flag changed."""
        changed = replace(self.asked, flags={**self.asked.flags, flag: value})
        return Change(name, f"{flag} {value}", self.model, self.node, changed, note)

    @abstractmethod
    def longest(self, sequences: int) -> int:
        """The most tokens that each of ``sequences`` can have; 0 where not even one token fits."""

    @abstractmethod
    def sequence_bytes(self, context: int) -> int:
        """Bytes of one rank's pool that a sequence of so many tokens holds, as allocated."""

    @abstractmethod
    def read_bytes(self, context: int, sequences: int) -> int:
        """Bytes of cache on one rank that a decode step of so many sequences reads at least."""

    @property
    @abstractmethod
    def weights_read_bytes(self) -> int:
        """Bytes of weights on one rank that a decode step reads at least."""

    def shortfall(self, context: int, sequences: int) -> str | None:
        """What so many sequences lack where it is not the pool; None where it is."""
        return None

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """Host memory that keeps prefixes behind the pool."""
        return ()

    def explain(self, context: int) -> list[str]:
        """How the engine counts a sequence of so many tokens, a sentence a line."""
        return []


class Engine(ABC):
    """One engine, all versions of it that are modelled."""

    name: ClassVar[str]
    how: ClassVar[str]  # a phrase for `kvplan engines`
    versions: ClassVar[tuple[str, str]]  # the oldest and the newest that are modelled
    flags: ClassVar[FlagTable]
    length_flag: ClassVar[str] = ""  # the flag that bounds a sequence's tokens
    not_on: ClassVar[tuple[str, ...]] = ()  # vendors whose devices it has no kernels for

    def asked_length(self, flags: Mapping[str, Any]) -> int | None:
        """The tokens that the flags bound a sequence to, where they do."""
        bound = flags.get(self.length_flag)
        return bound if isinstance(bound, int) and bound > 0 else None

    @abstractmethod
    def plan(self, model: Model, node: Node, asked: Asked) -> EnginePlan:
        """The plan; one that does not start is a plan too.

        Raises:
            BadQuestion: flags that contradict each other, or that this engine refuses.
        """

    @abstractmethod
    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """The levers that apply to a plan, each a question to ask again."""
