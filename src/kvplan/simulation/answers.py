"""Scenarios that were stepped without a clock, as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kvplan.core.errors import BadFile
from kvplan.planning.answer import Answer
from kvplan.simulation.replay import Replayed, read_scenarios, replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays(Answer):
    """What became of each scenario."""

    verb: ClassVar[str] = "simulate"
    warnings: tuple[str, ...] = ()

    scenarios: tuple[Replayed, ...]

    def body(self) -> dict[str, Any]:
        """The contract's ``scenarios``."""
        return {"scenarios": [one.to_dict() for one in self.scenarios]}


def replay_file(path: str | Path) -> Replays:
    """Every scenario of a JSONL file.

    Raises:
        BadFile: a line that is no scenario, or none at all.
        BadValue: a scenario without its settings or requests.
        SourceUnreachable: no such file.
    """
    found = tuple(map(replay, read_scenarios(Path(path))))
    if not found:
        raise BadFile(f"There is no scenario in {path}.")
    return Replays(scenarios=found)
