"""The flags an engine is started with: each one's value and where that is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kvplan.core.formats import Format


class Setting(NamedTuple):
    """A flag's value, and its source: ``flag``, a default at a version, a config key."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Flags in the engine's own spelling (``--gpu-memory-utilization``), given and defaulted."""

    settings: Mapping[str, Setting]

    def __getitem__(self, flag: str) -> Any:
        return self.settings[flag].value

    def __contains__(self, flag: object) -> bool:
        return flag in self.settings

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The contract's ``launch`` object."""
        return {
            flag: {"value": plain_value(setting.value), "source": setting.source}
            for flag, setting in self.settings.items()
        }


def plain_value(value: Any) -> Any:
    """A flag's value as JSON has it: a format by its name, several values as a list."""
    if isinstance(value, Format):
        return value.name
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
