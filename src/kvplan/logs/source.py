"""Bytes of a log as blocks of whole lines, in constant memory whatever its size.

A file, standard input, bytes or a text. UTF-16 (a shell's redirection on Windows) is read as it is
marked; what is no text is refused by name.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.readers import reach

Source = str | Path | bytes

BLOCK = 1 << 20
LONGEST_LINE = 4 << 20  # of a longer line the rest is left out
HEAD = 1 << 16  # what decides whether a source is text
MOST_CONTROLS = 0.02  # of the head; a text has next to none

_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\r\x1b\b\f")
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# Files that people hand over for their log, by how they begin.
_KNOWN = (
    (b"\x1f\x8b", "compressed with gzip", "Pass it through gzip -dc."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "Pass it through zstd -dc."),
    (b"PK\x03\x04", "a zip archive", "Extract the log."),
    (b"GGUF", "a model file", "kvplan size and kvplan fit take models."),
)


class Readable(Protocol):
    """What gives bytes."""

    def read(self, size: int, /) -> bytes:
        """Up to so many bytes; none at the end."""
        ...


class Blocks:
    """The blocks of a source; ``cut_lines`` counts lines that were too long to be read whole."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.name = _name_of(source)
        self.cut_lines = 0

    def __iter__(self) -> Iterator[bytes]:
        try:
            with _opened(self.source) as stream:
                yield from self._whole_lines(_text(stream, self.name))
        except OSError as error:
            said = error.strerror or str(error)
            raise SourceUnreachable(f"{self.name} cannot be read: {said}.") from None

    def _whole_lines(self, stream: Readable) -> Iterator[bytes]:
        rest, skipping = b"", False
        while chunk := stream.read(BLOCK):
            if skipping:
                end = chunk.find(b"\n")
                if end < 0:
                    continue
                chunk, skipping = chunk[end:], False
            data = rest + chunk if rest else chunk
            end = data.rfind(b"\n") + 1
            if not end and len(data) > LONGEST_LINE:
                self.cut_lines += 1
                yield data[:LONGEST_LINE]
                rest, skipping = b"", True
                continue
            if end:
                yield data[:end]
            rest = data[end:]
        if rest:
            yield rest


def _name_of(source: Source) -> str:
    if isinstance(source, bytes) or _is_text(source):
        return "the log"
    return "standard input" if source == "-" else str(source)


def _is_text(source: Source) -> bool:
    """Whether a string is a log itself: no name of a file has several lines."""
    return isinstance(source, str) and "\n" in source


def _opened(source: Source) -> AbstractContextManager[Readable]:
    """The bytes of a source.

    Raises:
        BadValue: a name that no file can have.
    """
    if isinstance(source, bytes):
        return nullcontext(io.BytesIO(source))
    if isinstance(source, str) and _is_text(source):
        return nullcontext(io.BytesIO(source.encode("utf-8", "replace")))
    reach.check(f"A log that is named ({str(source)[:60]})")
    if source == "-":
        return nullcontext(sys.stdin.buffer)
    path = Path(source)
    if not str(source) or "\0" in str(source):
        raise BadValue("No log is named.", "Pass a file, or - for standard input.")
    if path.is_dir():
        raise BadValue(f"{source} is a folder.", "Name one log in it.")
    return path.open("rb", buffering=0)


class _Rejoined:
    """A stream whose head was looked at."""

    def __init__(self, head: bytes, stream: Readable) -> None:
        self.head, self.stream = head, stream

    def read(self, size: int, /) -> bytes:
        """The head first."""
        head, self.head = self.head, b""
        return head or self.stream.read(size)


class _Recoded:
    """A stream in another encoding, as UTF-8."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int, /) -> bytes:
        """Some bytes of it; the source's end is the end."""
        while chunk := self.stream.read(size):
            text = self.decoder.decode(chunk)
            if text:
                return text.encode("utf-8", "replace")
        return b""


def _text(stream: Readable, name: str) -> Readable:
    """The stream as UTF-8.

    Raises:
        BadFile: it is no text.
    """
    head = stream.read(HEAD) or b""
    encoding = _UTF_16.get(head[:2])
    if encoding is not None:
        return _Recoded(_Rejoined(head[2:], stream), encoding)
    for magic, what, hint in _KNOWN:
        if head.startswith(magic):
            raise BadFile(f"{name} is {what}, and no log.", hint)
    # A log that was cut while its writer kept its place begins with a hole of zeros.
    written = head.lstrip(b"\0")
    controls = len(written) - len(written.translate(None, _CONTROLS))
    if head and (not written or controls > MOST_CONTROLS * len(written)):
        raise BadFile(
            f"{name} is binary and no log: {controls:,} of its first {len(written):,} bytes are "
            "control characters."
        )
    return _Rejoined(written, stream)
