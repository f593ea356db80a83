"""What a format of traces is, and what may be asked of its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kvplan.simulation.lengths import Distribution, Fixed
from kvplan.simulation.traces.columns import Columns

Row = Mapping[str, Any]
Take = Callable[[int, Row], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a trace is to be read.

    ``names`` says which column is the arrival, the prompt …; ``recorded`` keeps every arrival as
    the trace has it where its reader would let a turn wait for the one before; ``output`` is the
    length of answers that the trace does not have; ``scale`` multiplies the rate of a summary.
    """

    requests: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    recorded: bool | None = None
    tokenizer: str | None = None
    output: Distribution = field(default_factory=lambda: Fixed(256))
    workload: str | None = None
    scale: float = 1.0
    seed: int = 0
    offline: bool = False


class Format(Protocol):
    """A format whose rows are objects: a module with these names."""

    NAME: str

    def claims(self, row: Row) -> bool:
        """Whether a trace that begins with this row is of the format."""
        ...

    def reader(self, row: Row, columns: Columns, reading: Reading) -> Take:
        """What takes a numbered row into the columns, or raises ``BadRow``; ``row`` is the first.

        Raises:
            BadValue: something that was asked and that the format cannot do.
        """
        ...
