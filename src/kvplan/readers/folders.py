"""A checkpoint's folder: here, or on a hub. Readers of checkpoints ask it for files by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, TypeVar

from kvplan.readers.json_text import read_bounded
from kvplan.readers.ranges import LocalFile, RangeReader

T = TypeVar("T")

MAX_LISTED = 1 << 14


class Folder(Protocol):
    """Files by name.

    Every method raises SourceUnreachable where the folder does not answer.
    """

    @property
    def address(self) -> str:
        """Where it is, for messages."""

    def has(self, name: str) -> bool:
        """Whether there is such a file of tensors."""

    def read(self, name: str, most: int) -> bytes | None:
        """All of a small file, or None where there is none.

        Raises:
            BadFile: it is larger than ``most`` bytes.
        """

    def open(self, name: str) -> RangeReader:
        """A file that is there, for reading its header."""

    def names(self) -> list[str]:
        """The names of all files, those in folders with their path."""

    def each(self, act: Callable[[str], T], names: Iterable[str]) -> list[T]:
        """What ``act`` returns for each name, in order; side by side where waiting dominates."""


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        """The folder's path."""
        return str(self.path)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).exists()

    def read(self, name: str, most: int) -> bytes | None:
        """All of a small file, or None."""
        return read_bounded(self.path / name, most) if self.has(name) else None

    def open(self, name: str) -> LocalFile:
        """A file of the folder."""
        return LocalFile(self.path / name)

    def names(self) -> list[str]:
        """The names of the files in it and in its folders, these not entered further."""
        found = islice(chain(self.path.glob("*"), self.path.glob("*/*")), MAX_LISTED)
        return sorted(file.relative_to(self.path).as_posix() for file in found)

    def each(self, act: Callable[[str], T], names: Iterable[str]) -> list[T]:
        """One after the other: a disk does not wait."""
        return [act(name) for name in names]
