"""Checked access to the keys of a config, with the class defaults behind them.

Families read through this and never see a raw dict: a value of the wrong type, out of range or
absent where it is needed ends in a sentence that names the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvplan.core.errors import BadFile
from kvplan.readers import defaults
from kvplan.readers.json_text import shown

MAX_INTEGER = 1 << 40  # no dimension, count or vocabulary of a model is near this
MAX_LAYERS = 4096
MAX_NESTING = 6


class _Unset:
    """The absence of a default, which is not None."""


UNSET = _Unset()


class Config:
    """One section of a config.json and the defaults of its type.

    Args:
        raw: the parsed section.
        model_type: its type; decides the defaults and the older key names.
        path: where it stands in the file, for messages (``text_config``).
        given: values that the enclosing type gives to this section before the file does.
    """

    __slots__ = (
        "_nested",
        "_sections",
        "_values",
        "given",
        "model_type",
        "names",
        "path",
        "raw",
        "read",
    )

    def __init__(
        self,
        raw: Mapping[str, Any],
        model_type: str,
        path: str = "",
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self.raw = raw
        self.model_type = model_type
        self.path = path
        self.given = given
        self.read: set[str] = set()
        self._nested: list[Config] = []
        self._sections: dict[tuple[str, str, bool], Config] = {}
        own = defaults.of_type(model_type)
        values = {**own.values, **given, **raw} if given else {**own.values, **raw}
        self.names = own.names
        # transformers sets what is no field of the class last, so that holds where a file has both.
        for standard, native in own.names.items():
            if standard in raw and (native not in raw or standard not in own.declared):
                values[native] = raw[standard]
        self._values = values

    def _native(self, key: str) -> str:
        return self.names.get(key, key)

    def has(self, key: str) -> bool:
        """Whether the file or the class gives the key a value other than null."""
        return self._values.get(self.names.get(key, key)) is not None

    def in_file(self, key: str) -> bool:
        """Whether the file itself has the key, under either of its names."""
        return key in self.raw or self._native(key) in self.raw

    def value(self, key: str, default: Any = None) -> Any:
        """The value as it stands, unchecked; ``default`` where it is absent or null."""
        native = self.names.get(key, key) if self.names else key
        self.read.add(native)
        found = self._values.get(native)
        return default if found is None else found

    def whole(self, key: str, default: int | _Unset = UNSET, least: int = 1) -> int:
        """A whole number of at least ``least``.

        Raises:
            BadFile: absent without a default, not a whole number, or out of range.
        """
        native = self.names.get(key, key) if self.names else key
        self.read.add(native)
        found = self._values.get(native)
        if found.__class__ is int and least <= found <= MAX_INTEGER:
            return found
        if found is None:
            if isinstance(default, _Unset):
                raise BadFile(
                    f"The config has no {self._where(native)}, and its type "
                    f"({self.model_type}) gives it no default.",
                    "Add the key, or pass it with --set.",
                )
            return default
        if isinstance(found, float) and found.is_integer() and least <= found <= MAX_INTEGER:
            return int(found)
        raise self._bad(native, found, _whole_from(least, found))

    def first_whole(self, *keys: str, default: int | _Unset = UNSET, least: int = 1) -> int:
        """The first of several keys that has a value."""
        for key in keys:
            if self.has(key):
                return self.whole(key, least=least)
        return self.whole(keys[0], default, least)

    def whole_or_auto(self, key: str, derived: int) -> int:
        """A whole number, or ``derived`` where it is absent or ``"auto"``."""
        return derived if self.value(key) == "auto" else self.whole(key, derived)

    def layers(self, key: str = "num_hidden_layers", default: int | _Unset = UNSET) -> int:
        """A number of layers: bounded, since lists are made of that length."""
        count = self.whole(key, default, least=0)
        if count > MAX_LAYERS:
            raise self._bad(self._native(key), count, f"a number of layers up to {MAX_LAYERS:,}")
        return count

    def number(self, key: str, default: float | _Unset = UNSET) -> float:
        """A finite number."""
        found = self.value(key)
        if found is None and not isinstance(default, _Unset):
            return default
        if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e18:
            return float(found)
        raise self._bad(self._native(key), found, "a number")

    def flag(self, key: str, default: bool = False) -> bool:
        """A true or false; a number counts as it does in Python."""
        found = self.value(key, default)
        if isinstance(found, bool | int | float):
            return bool(found)
        raise self._bad(self._native(key), found, "true or false")

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        found = self.value(key, default)
        if isinstance(found, str):
            return found
        raise self._bad(self._native(key), found, "a text")

    def wholes(self, key: str, default: Sequence[int] | None = None, least: int = 0) -> list[int]:
        """A list of whole numbers."""
        found = self.value(key, default)
        if not isinstance(found, list | tuple) or len(found) > 16 * MAX_LAYERS:
            raise self._bad(self._native(key), found, "a list of whole numbers")
        for item in found:
            if item.__class__ is not int or not least <= item <= MAX_INTEGER:
                raise self._bad(self._native(key), item, _whole_from(least, item))
        return list(found)

    def words(self, key: str, default: Sequence[str] | None = None) -> list[str]:
        """A list of strings."""
        found = self.value(key, default)
        if not isinstance(found, list | tuple) or len(found) > 16 * MAX_LAYERS:
            raise self._bad(self._native(key), found, "a list of names")
        for item in found:
            if item.__class__ is not str:
                raise self._bad(self._native(key), item, "a list of names")
        return list(found)

    def is_list(self, key: str) -> bool:
        """Whether the value is a list (some keys are a number or a list of one a layer)."""
        return isinstance(self.value(key), list | tuple)

    def section(self, key: str, default_type: str = "", *, inherits: bool = False) -> Config:
        """A nested config, with the defaults of its own type.

        Its type is what it names where the enclosing class leaves that open, else what that class
        gives it, else ``default_type``. The class's values for it hold where it is absent as a
        whole (transformers 5.24.0, configuration_utils.py, SubConfigSpec.create_subconfig), and
        with ``inherits`` also below those of the file.
        """
        asked = (key, default_type, inherits)
        if asked not in self._sections:
            self._sections[asked] = self._nest(self._section(*asked))
        return self._sections[asked]

    def _section(self, key: str, default_type: str, inherits: bool) -> Config:
        own = defaults.of_type(self.model_type).sections.get(key, {})
        found = self.value(key)
        given = own.get("values") if found is None or inherits else None
        found = {} if found is None else found
        if not isinstance(found, Mapping):
            raise self._bad(key, found, "an object")
        if self.path.count(".") >= MAX_NESTING:
            raise BadFile(f"The config is nested deeper than {MAX_NESTING} sections at {key}.")
        fixed = None if own.get("open") else own.get("type")
        model_type = fixed or found.get("model_type") or own.get("type") or default_type
        if not isinstance(model_type, str):
            raise self._bad(f"{key}.model_type", model_type, "a text")
        return Config(found, model_type, self._where(key), given)

    def names_section(self, key: str) -> bool:
        """Whether a nested config is there: in the file, or in the class unless it is optional."""
        if self.value(key) is not None:
            return True
        own = defaults.of_type(self.model_type).sections.get(key)
        return own is not None and not own.get("optional", False)

    def with_values(self, **values: Any) -> Config:
        """The same section with some values replaced (a family's older spelling)."""
        names = self.names
        kept = {key: found for key, found in self.raw.items() if names.get(key, key) not in values}
        return self._nest(Config({**kept, **values}, self.model_type, self.path, self.given))

    def _nest(self, inner: Config) -> Config:
        """Remembers a config made out of this one, so that its facts are told too."""
        self._nested.append(inner)
        return inner

    def with_names(self, names: Mapping[str, str]) -> Config:
        """The same section, whose type has its own names of standard keys (``n_head``)."""
        same = Config(self.raw, self.model_type, self.path, self.given)
        same.read = self.read
        same.names = {**self.names, **names}
        for standard, native in names.items():
            if standard in self.raw and native not in self.raw:
                same._values[native] = self.raw[standard]
        return same

    def at_layer(self, place: int) -> Config:
        """The section as one layer sees it: with what ``per_layer_config`` says of that layer.

        Its keys are places as texts, padded with zeros (transformers 5.24.0,
        integrations/heterogeneity/configuration_utils.py).
        """
        overrides = self.value("per_layer_config")
        if not isinstance(overrides, Mapping):
            raise self._bad("per_layer_config", overrides, "an object")
        for key, values in overrides.items():
            if key.isdecimal() and int(key[:8]) == place:
                if not isinstance(values, Mapping):
                    raise self._bad(f"per_layer_config.{key[:8]}", values, "an object")
                return self.with_values(**values)
        return self

    def origin(self, key: str) -> str:
        """Where the value of a key is from, for a person."""
        if self.in_file(key):
            return "config"
        if self.value(key) is None:
            return "absent"
        return f"class default of {self.model_type} ({defaults.source()})"

    def facts(self) -> dict[str, tuple[object, str]]:
        """The keys that were read, with their values and where those are from."""
        found = {
            self._where(key): (self._values[key], self.origin(key))
            for key in sorted(self.read)
            if self._values.get(key) is not None and not isinstance(self._values[key], Mapping)
        }
        for inner in self._nested:
            found |= inner.facts()
        return found

    def _where(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _bad(self, key: str, found: object, wanted: str) -> BadFile:
        return BadFile(f"The config's {self._where(key)} is {shown(found)}, which is not {wanted}.")


def _whole_from(least: int, found: object) -> str:
    """What was wanted; the upper bound where that is what was passed."""
    if isinstance(found, int | float) and found > MAX_INTEGER:
        return f"a whole number from {least} to {MAX_INTEGER:,}"
    return f"a whole number of at least {least}"
