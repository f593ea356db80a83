"""The file of flags that a command line may name: vLLM's and SGLang's ``--config``, TensorRT-LLM's.

Its keys are the names of flags, a mapping is the JSON of one, a list its words. What a file says of
things that are no flag of the engine's table is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.core.errors import BadFile
from kvplan.engines.flags import FlagTable
from kvplan.engines.known_flags import KnownFlags
from kvplan.readers import reach
from kvplan.readers.json_text import read_bounded
from kvplan.readers.yaml_text import MAX_BYTES, read_yaml


class FromFile(NamedTuple):
    """The flags of a file, its model, and what to know of it."""

    flags: Mapping[str, str] = {}
    model: str | None = None
    warnings: tuple[str, ...] = ()


def read_config_file(text: str, table: FlagTable, known: KnownFlags) -> FromFile:
    """What a file says, if it is on this machine.

    Raises:
        BadFile: no mapping of keys.
    """
    path = Path(text[:4096]).expanduser()
    try:
        is_here = reach.is_open() and path.is_file()
    except (OSError, ValueError):
        is_here = False
    if not is_here:
        said = f"{table.engine} reads more flags from {text[:80]}, which is not on this machine."
        return FromFile(warnings=(said,))
    documents = read_yaml(read_bounded(path, MAX_BYTES), str(path))
    if not documents or not isinstance(documents[0], dict):
        raise BadFile(f"{path} has no keys that could be flags.")
    return _flags(documents[0], path, table, known)


def _flags(keys: Mapping[str, Any], path: Path, table: FlagTable, known: KnownFlags) -> FromFile:
    flags, others, model = {}, [], None
    for key, value in _entries(keys, known):
        name = known.config_keys.get(key, f"--{key.replace('_', '-')}")
        flag = table.find(name)
        if flag is not None:
            flags[flag.names[0]] = _text(value)
        elif name in known.model:
            model = _text(value)
        elif name not in known.harmless:
            others.append(key)
    more = f" and {len(others) - 12} more" if len(others) > 12 else ""
    said = f"Not modelled of {path.name}: {', '.join(others[:12])}{more}."
    return FromFile(flags, model, (said,) if others else ())


def _entries(keys: Mapping[str, Any], known: KnownFlags) -> Iterator[tuple[str, Any]]:
    """Each key with its value; those of a section whose keys are flags one by one."""
    sections = {key.partition(".")[0] for key in known.config_keys}
    for key, value in keys.items():
        if key in sections and isinstance(value, dict):
            yield from ((f"{key}.{inner}", held) for inner, held in value.items())
        else:
            yield key, value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return json.dumps(value)
