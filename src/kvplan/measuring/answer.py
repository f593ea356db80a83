"""What a measurement says: who answered, a row for each kind of run, and predictions beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from kvplan.core.measured import Calibration
from kvplan.measuring.differences import Difference
from kvplan.measuring.experiment import Experiment
from kvplan.measuring.predicted import Predicted
from kvplan.measuring.summary import Run
from kvplan.planning.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureAnswer(Answer):
    """A measurement and what was predicted of it; ``environment`` says where it was made."""

    verb: ClassVar[str] = "measure"

    experiment: Experiment
    runs: tuple[Run, ...]
    predicted: tuple[Predicted, ...]
    differences: tuple[Difference, ...]
    calibration: Calibration | None
    environment: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def failures(self) -> dict[str, int]:
        """Requests that failed, by kind, over all runs."""
        found: dict[str, int] = {}
        for run in self.runs:
            for kind, count in run.failures.items():
                found[kind] = found.get(kind, 0) + count
        return found

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``measure``."""
        return {
            "server": self.experiment.server.to_dict(),
            "runs": [run.to_dict() for run in self.runs],
            "predicted": [one.to_dict() for one in self.predicted],
            "differences": [one.to_dict() for one in self.differences],
            "calibration": self.calibration.to_dict() if self.calibration else None,
            "failures": self.failures,
            "is_whole": self.experiment.is_whole,
            "memory_source": self.experiment.memory.source,
            "environment": self.environment,
        }
