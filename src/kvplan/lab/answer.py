"""The answer of the lab: the model, every cache, the batch, and what else was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kvplan.lab.figures import Compiled, Lost, Row, Shared
from kvplan.planning.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class LabAnswer(Answer):
    """Caches side by side on one model, one prompt and one text."""

    verb: ClassVar[str] = "lab"

    model: str
    architecture: str
    dtype: str
    device: str
    threads: int
    budget: int
    passages: int
    passage_tokens: int
    rows: tuple[Row, ...]
    batch: Shared | None = None
    lost: tuple[Lost, ...] = ()
    compiled: tuple[Compiled, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was left out, and what was not as it should be."""
        return (*self.notes, *self.surprises)

    @property
    def surprises(self) -> tuple[str, ...]:
        """Where a cache held other bytes than foretold, or lost what it should not lose."""
        held = [
            f"{row.cache} held {row.measured_bytes:,} B, not the {row.predicted_bytes:,} foretold."
            for row in self.rows
            if row.measured_bytes != row.predicted_bytes
        ]
        lost = [
            f"{row.cache} loses nothing, and parts from full after {row.same_tokens} tokens."
            for row in self.rows
            if row.exact and not row.identical_output
        ]
        return (*held, *lost)

    def row(self, cache: str) -> Row | None:
        """The row of a cache, where it was run."""
        return next((row for row in self.rows if row.cache == cache), None)

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``lab``."""
        return {
            "model": self.model,
            "architecture": self.architecture,
            "dtype": self.dtype,
            "device": self.device,
            "threads": self.threads,
            "budget_tokens": self.budget,
            "passages": {"count": self.passages, "tokens": self.passage_tokens},
            "rows": [row.to_dict() for row in self.rows],
            "batch": self.batch.to_dict() if self.batch else None,
            "shortened": [one.to_dict() for one in self.lost],
            "torch_compile": [one.to_dict() for one in self.compiled],
        }
