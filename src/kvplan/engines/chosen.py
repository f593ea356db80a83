"""Flags resolved one by one: what was given, else a default, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.launch import Launch, Setting
from kvplan.core.model import Model
from kvplan.core.sharding import divides, nearest_sizes, query_heads

GIVEN = "flag"


class Chosen:
    """Answers for each flag, and remembers the answers for the launch."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self._settings: dict[str, Setting] = {}

    def __call__(self, flag: str, default: Any = None, source: str = "default") -> Any:
        """The value of a flag; a default of None leaves no trace."""
        found = self.given.get(flag)
        if found is not None:
            self._settings[flag] = Setting(found, GIVEN)
            return found
        if default is not None:
            self._settings[flag] = Setting(default, source)
        return default

    @property
    def launch(self) -> Launch:
        """All that was asked for so far."""
        return Launch(self._settings)


def commanded(launch: Launch, given: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings of a command: those of a launch, and what was given that no rule reads."""
    others = {flag: Setting(value, GIVEN) for flag, value in given.items() if value is not None}
    return others | dict(launch.settings)


def check_heads(model: Model, ranks: int, flag: str, counted: str = "ranks") -> None:
    """Attention has to be cut into whole heads.

    Raises:
        BadValue: query heads that ``ranks`` do not divide, with the nearest numbers that do.
    """
    if divides(model, ranks):
        return
    heads = ", ".join(map(str, query_heads(model)))
    sizes = " or ".join(map(str, nearest_sizes(model, ranks)))
    raise BadValue(
        f"{model.name} has {heads} query heads, which {ranks} {counted} of tensor parallelism do "
        "not divide.",
        f"The nearest that do: {flag} {sizes}.",
    )
