"""Lines of a trace from a file, gzip or not, standard input or bytes, in constant memory.

    source ─► bytes ─► unzipped ─► UTF-8 ─► (line number, line)

What cannot be a trace ends in a sentence: binary files, lines without end, archives that grow out
of all proportion. What is merely a bad row is for the reader of rows to count.
"""

from __future__ import annotations

import codecs
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.core.units import GIB, MIB, format_bytes
from kvplan.logs.source import Readable
from kvplan.readers import reach

Source = str | Path | bytes

BLOCK = MIB
LONGEST_LINE = 256 * MIB  # a session of a million tokens as text is 5 MB
MOST_BYTES = 16 * GIB  # unzipped
# A million equal rows compress 500-fold, and are 100 MB; what grows more than that is no trace.
MOST_GROWTH, GROWTH_FROM = 200, 512 * MIB
HEAD = 4096
MOST_CONTROLS = 0.02  # of the head; a text has next to none

_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\r\f")
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_GZIP = b"\x1f\x8b"
_KNOWN = (
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "Pass it through zstd -dc."),
    (b"PK\x03\x04", "a zip archive", "Extract the trace."),
    (b"PAR1", "a Parquet file", "Write it as CSV or JSONL."),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file", "Run git lfs pull."),
)

Line = tuple[int, bytes]


def name_of(source: Source) -> str:
    """What a message calls a source."""
    if isinstance(source, bytes):
        return "the trace"
    return "standard input" if source == "-" else str(source)


def lines_of(source: Source) -> Iterator[Line]:
    """The lines that are not blank, numbered from 1, without their ends.

    Raises:
        BadFile: no text, a line longer than 256 MiB, or more than 16 GiB in all.
        SourceUnreachable: it cannot be read.
    """
    name = name_of(source)
    try:
        with _opened(source) as stream:
            yield from _split(_text(stream, name), name)
    except OSError as error:
        said = error.strerror or str(error)
        raise SourceUnreachable(f"{name} cannot be read: {said}.") from None


def _opened(source: Source) -> AbstractContextManager[Readable]:
    if isinstance(source, bytes):
        return nullcontext(io.BytesIO(source))
    reach.check(f"A trace that is named ({str(source)[:60]})")
    if source == "-":
        return nullcontext(sys.stdin.buffer)
    if not str(source) or "\0" in str(source):
        raise BadValue("No trace is named.", "Pass a file, or - for standard input.")
    if Path(source).is_dir():
        raise BadValue(f"{source} is a folder.", "Name one trace in it.")
    return Path(source).open("rb", buffering=0)


def _blocks(stream: Readable) -> Iterator[bytes]:
    while block := stream.read(BLOCK):
        yield block


def _text(stream: Readable, name: str) -> Iterator[bytes]:
    """The bytes of a stream as UTF-8, unzipped, at most so many."""
    blocks = _blocks(stream)
    head = next(blocks, b"")
    if head.startswith(_GZIP):
        blocks = _unzipped(chain([head], blocks), name)
        head = next(blocks, b"")
    encoding = _UTF_16.get(head[:2])
    if encoding is not None:
        return _recoded(chain([head[2:]], blocks), encoding)
    _check_text(head, name)
    return _bounded(chain([head.removeprefix(codecs.BOM_UTF8)], blocks), name)


def _check_text(head: bytes, name: str) -> None:
    for magic, what, hint in _KNOWN:
        if head.startswith(magic):
            raise BadFile(f"{name} is {what}.", hint)
    head = head[:HEAD]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > MOST_CONTROLS * len(head):
        raise BadFile(f"{name} is binary and no trace.", "Traces are JSONL or CSV, gzipped or not.")


def _unzipped(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Members one after the other, as gzip itself reads them."""
    taken = given = 0
    unzip = zlib.decompressobj(wbits=31)
    for block in blocks:
        taken += len(block)
        data, part = block, b""
        while data or len(part) == BLOCK:
            if unzip.eof:
                unzip = zlib.decompressobj(wbits=31)
            try:
                part = unzip.decompress(data, BLOCK)
            except zlib.error as error:
                raise BadFile(f"{name} is damaged: {error}.") from None
            given += len(part)
            _check_growth(taken, given, name)
            if part:
                yield part
            data = unzip.unused_data.lstrip(b"\0") if unzip.eof else unzip.unconsumed_tail
    if not unzip.eof:
        raise BadFile(f"{name} is cut short: its gzip stream has no end.", "Fetch it again.")


def _check_growth(taken: int, given: int, name: str) -> None:
    if given > GROWTH_FROM and given > MOST_GROWTH * taken:
        raise BadFile(
            f"{name} grows from {format_bytes(taken)} to more than {format_bytes(given)} when it "
            "is unzipped: no trace does."
        )


def _recoded(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "replace")


def _bounded(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    taken = 0
    for block in blocks:
        taken += len(block)
        if taken > MOST_BYTES:
            raise BadFile(f"{name} is larger than {format_bytes(MOST_BYTES)}.", "Take a part.")
        yield block


def _split(blocks: Iterator[bytes], name: str) -> Iterator[Line]:
    number, pieces, held = 0, list[bytes](), 0
    for block in blocks:
        first, *others = block.split(b"\n")
        pieces.append(first)
        held += len(first)
        if held > LONGEST_LINE:
            raise BadFile(
                f"Line {number + 1:,} of {name} has no end within {format_bytes(LONGEST_LINE)}.",
                "Traces have one request a line.",
            )
        if not others:
            continue
        for line in (b"".join(pieces), *others[:-1]):
            number += 1
            if line and not line.isspace():
                yield number, line
        pieces, held = [others[-1]], len(others[-1])
    last = b"".join(pieces)
    if last and not last.isspace():
        yield number + 1, last
