"""A GGUF model in one file or in several: ``name-00001-of-00003.gguf``.

The first file has the metadata, each has its own tensors (llama.cpp, tools/gguf-split).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kvplan.core.errors import BadFile
from kvplan.readers.gguf.header import Header, Tensor, read_header
from kvplan.readers.ranges import LocalFile, RangeReader

MAX_FILES = 1024

Siblings = Callable[[str], RangeReader]


class Files(NamedTuple):
    """The first file's header, and the tensors of all."""

    header: Header
    tensors: tuple[Tensor, ...]


def beside(path: Path) -> Siblings:
    """The files in the same folder, by name."""
    return lambda name: LocalFile(path.parent / name)


def read_files(source: RangeReader, siblings: Siblings | None = None) -> Files:
    """The headers of all files of a model, whichever of them is given.

    Raises:
        BadFile: a file of a split model is not what its number says, or cannot be told.
        SourceUnreachable: one is not there.
    """
    header = read_header(source)
    count = _number(header, "split.count", 0)
    if count < 2:
        return Files(header, header.tensors)
    own = _number(header, "split.no", 0)
    names = _names(header, own, count)
    if siblings is None:
        raise BadFile(f"{header.file} is file {own + 1} of {count} of its model, alone.")
    headers = [header if n == own else read_header(siblings(names[n])) for n in range(count)]
    for place, part in enumerate(headers):
        if _number(part, "split.count", 0) != count or _number(part, "split.no", 0) != place:
            raise BadFile(f"{part.file} is not file {place + 1} of {count} of {header.file}.")
    tensors = tuple(tensor for part in headers for tensor in part.tensors)
    promised = _number(headers[0], "split.tensors.count", len(tensors))
    if promised != len(tensors):
        raise BadFile(
            f"The {count} files of {header.file} hold {len(tensors):,} tensors where the first "
            f"promises {promised:,}."
        )
    return Files(headers[0], tensors)


def _names(header: Header, own: int, count: int) -> list[str]:
    """The names of all files, out of one."""
    ending = f"-{own + 1:05d}-of-{count:05d}.gguf"
    if not header.file.endswith(ending) or not 0 <= own < count <= MAX_FILES:
        raise BadFile(
            f"{header.file} says that it is file {own + 1:,} of {count:,} of its model; "
            f"its name would end in {ending[:40]}."
        )
    start = header.file.removesuffix(ending)
    return [f"{start}-{place + 1:05d}-of-{count:05d}.gguf" for place in range(count)]


def _number(header: Header, key: str, default: int) -> int:
    """A whole number of the split's keys."""
    found = header.metadata.get(key, default)
    if found.__class__ is not int or not isinstance(found, int) or found < 0:
        raise BadFile(f"{key} of {header.file} is not a number of files or tensors.")
    return found
