"""Reading parts of a source: a file here, or one behind HTTP range requests.

Header readers ask for bytes by offset and never for a whole file. ``Prefix`` is how they do it: it
holds the start of a source and doubles it as more is needed, so that a small header costs one
request and a large one a few.

    64 KiB → 128 KiB → 256 KiB → … → the limit
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.core.units import KIB, MIB, format_bytes

FIRST_BYTES = 64 * KIB
MAX_HEADER_BYTES = 64 * MIB  # a vocabulary of 262,144 tokens with its merges is 16 MiB


class RangeReader(Protocol):
    """A source of known size that is read by offset."""

    @property
    def name(self) -> str:
        """What to call it: a file name, an address."""

    @property
    def size(self) -> int:
        """Bytes of the whole source."""

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from ``offset``; fewer than ``length`` only where the source ends.

        Raises:
            SourceUnreachable: it does not answer.
            BadFile: more was asked for, all reads together, than a header can be.
        """


class LocalFile:
    """A file of this machine. It is opened for each read, so nothing is left to close."""

    def __init__(self, path: str | Path, limit: int = MAX_HEADER_BYTES) -> None:
        self.path = Path(path)
        self.size = _size(self.path)
        self._left = limit

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from ``offset``."""
        self._left -= length
        if self._left < 0:
            raise BadFile(f"The header of {self.name} is larger than a header can be.")
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise SourceUnreachable(f"{self.path} cannot be read: {error.strerror}.") from None


class Memory:
    """A source held in memory: a header that came another way.

    ``size`` may exceed the bytes held, where the rest of the file is known but not here.
    """

    def __init__(self, data: bytes, name: str = "memory", size: int | None = None) -> None:
        self.data = data
        self.name = name
        self.size = len(data) if size is None else size

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from ``offset``."""
        return self.data[offset : offset + length]


class Prefix:
    """The start of a source, which grows as it is asked for."""

    def __init__(self, source: RangeReader, limit: int = MAX_HEADER_BYTES) -> None:
        self.source = source
        self.data = bytearray()
        self._limit = limit

    def upto(self, end: int) -> int:
        """Hold at least ``end`` bytes; how many are held.

        Raises:
            BadFile: the source ends before, or ``end`` is beyond the limit.
        """
        held = len(self.data)
        if end <= held:
            return held
        if end > self.source.size:
            raise BadFile(
                f"{self.source.name} is cut short: its header needs {end:,} bytes "
                f"and the file has {self.source.size:,}."
            )
        if end > self._limit:
            raise BadFile(
                f"The header of {self.source.name} claims {end:,} bytes or more; "
                f"at most {format_bytes(self._limit)} are read."
            )
        wanted = max(FIRST_BYTES, 1 << (end - 1).bit_length())
        self.data += self.source.read(held, min(wanted, self._limit, self.source.size) - held)
        if len(self.data) < end:
            raise BadFile(f"{self.source.name} ended after {len(self.data):,} bytes of its header.")
        return len(self.data)


def _size(path: Path) -> int:
    """Bytes of a regular file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise SourceUnreachable(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its path is not one"
        raise SourceUnreachable(f"{str(path)[:200]!r} cannot be read: {reason}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadFile(f"{path} is not a file.")
    return status.st_size
