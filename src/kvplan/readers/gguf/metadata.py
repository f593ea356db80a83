"""Checked access to the metadata of a GGUF file: what llama.cpp calls its hyperparameters.

Keys are asked for without the architecture they begin with: ``block_count`` is
``llama.block_count`` in a file whose ``general.architecture`` is ``llama``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kvplan.core.errors import BadFile
from kvplan.core.model import Facts
from kvplan.readers.config import MAX_INTEGER, MAX_LAYERS, UNSET, _Unset
from kvplan.readers.gguf.header import Header, Skipped, Value
from kvplan.readers.json_text import shown


class Metadata:
    """The keys of one model, its type checked; ``read`` are those that were asked for."""

    def __init__(self, header: Header) -> None:
        self.file = header.file
        self.values: Mapping[str, Value] = header.metadata
        self.read: dict[str, Value] = {}
        self.architecture = self._architecture()

    def _architecture(self) -> str:
        found = self.values.get("general.architecture")
        if not isinstance(found, str) or not found or len(found) > 100:
            raise BadFile(f"{self.file} names no general.architecture.")
        return found

    def key(self, key: str) -> str:
        """The key as the file has it."""
        return f"{self.architecture}.{key}"

    def value(self, key: str) -> Value | None:
        """A value of the model as it stands, unchecked."""
        full = self.key(key)
        found = self.values.get(full)
        if found is not None:
            self.read[full] = found
        return found

    def has(self, key: str) -> bool:
        """Whether the file has the key."""
        return self.key(key) in self.values

    def whole(self, key: str, default: int | _Unset = UNSET, least: int = 1) -> int:
        """A whole number of at least ``least``.

        Raises:
            BadFile: absent without a default, not a whole number, or out of range.
        """
        found = self.value(key)
        if found is None:
            if isinstance(default, _Unset):
                raise BadFile(f"{self.file} has no {self.key(key)}.")
            return default
        return self._whole(key, found, least)

    def layers(self, key: str, default: int | _Unset = UNSET) -> int:
        """A number of layers: bounded, since lists are made of that length."""
        count = self.whole(key, default, least=0)
        if count > MAX_LAYERS:
            raise self._bad(key, count, f"a number of layers up to {MAX_LAYERS:,}")
        return count

    def per_layer(
        self, key: str, count: int, default: Sequence[int] | None = None, least: int = 0
    ) -> list[int]:
        """One number a layer: an array of that length, or one number for all.

        llama.cpp src/llama-model-loader.cpp, get_key_or_arr: an array of another length is refused.
        """
        found = self.value(key)
        if found is None and default is not None:
            return list(default)
        if not isinstance(found, tuple) or isinstance(found, Skipped):
            return [self.whole(key, least=least)] * count
        if len(found) != count:
            raise BadFile(
                f"{self.key(key)} of {self.file} has {len(found):,} numbers for {count:,} layers."
            )
        return [self._whole(key, int(n) if n.__class__ is bool else n, least) for n in found]

    def text(self, key: str) -> str:
        """A text under its full key, or an empty one."""
        found = self.values.get(key)
        return found if isinstance(found, str) else ""

    def length(self, key: str) -> int | None:
        """Elements of an array under its full key."""
        found = self.values.get(key)
        if isinstance(found, Skipped):
            return found.length
        return len(found) if isinstance(found, tuple) else None

    def own_keys(self) -> Iterator[str]:
        """The keys of this architecture, without its name."""
        start = f"{self.architecture}."
        return (key.removeprefix(start) for key in self.values if key.startswith(start))

    def facts(self) -> Facts:
        """The keys that were read, with their values."""
        return {key: (value, self.file) for key, value in sorted(self.read.items())}

    def _whole(self, key: str, found: object, least: int) -> int:
        if found.__class__ is int and isinstance(found, int) and least <= found <= MAX_INTEGER:
            return found
        raise self._bad(key, found, f"a whole number of at least {least}")

    def _bad(self, key: str, found: object, wanted: str) -> BadFile:
        said = "a long array" if isinstance(found, Skipped) else shown(found)
        return BadFile(f"{self.key(key)} of {self.file} is {said}, which is not {wanted}.")
