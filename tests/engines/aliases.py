"""The config that describes a report's model, by the table beside the configs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"
CONFIGS = REFERENCE / "configs"
REPORTS = REFERENCE / "reports"


@cache
def _aliases() -> dict[str, str]:
    lines = (CONFIGS / "aliases.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return {name: file for name, file, *_ in (line.split("\t") for line in lines)}


def config_of(name: str | None) -> Path | None:
    """The config of a name as a report has it, None where it names no model."""
    file = _aliases().get(name or "")
    return CONFIGS / file if file else None
