"""Requests of any kind as prompts: text, messages, chats, ids of tokens, or a trace's block ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.core.errors import BadFile
from kvplan.core.units import MIB, format_bytes
from kvplan.readers import reach
from kvplan.simulation.prefix.prompts import Prompt, Prompts
from kvplan.simulation.prompts.encoder import (
    BYTES_PER_TOKEN,
    LONGEST_TEXT,
    Encoder,
    Tokenizer,
    encoder_of,
)
from kvplan.simulation.prompts.messages import (
    NoMessages,
    Part,
    content_of,
    joined,
    parts_of,
)
from kvplan.simulation.traces import agentic, bailian, mooncake, read_lines, table
from kvplan.simulation.traces.base import Reading
from kvplan.simulation.traces.chats import check_chat, messages_of
from kvplan.simulation.traces.columns import BadRow, Columns
from kvplan.simulation.traces.documents import documents_of, row_of
from kvplan.simulation.traces.lines import Line, lines_of, name_of
from kvplan.simulation.traffic import Traffic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Units = NDArray[Any]

MOST_UNITS = 512 * MIB  # of all prompts together
MOST_PROMPTS = 2_000_000
IDS = ("prompt_token_ids", "token_ids", "input_ids", "tokens")
TEXTS = ("prompt", "text", "content", "input")


def read_prompts(
    source: Any,
    *,
    tokenizer: str | None = None,
    requests: int | None = None,
    offline: bool = False,
) -> Prompts:
    """Prompts of a file, a folder of texts, standard input, bytes, or a list of any of them.

    Raises:
        BadFile: nothing that says what prompts hold.
        BadValue: a tokenizer that cannot be used.
        SourceUnreachable: it cannot be read.
    """
    encoder = encoder_of(tokenizer, offline=offline)
    if reach.is_open() and _is_folder(source):
        return _Texts(str(source), encoder, requests).all(enumerate(_files(Path(source)), 1))
    if not isinstance(source, str | bytes | Path):
        return _Texts("the requests", encoder, requests).all(enumerate(source, 1))
    return _of_lines(lines_of(source), _Texts(name_of(source), encoder, requests))


def _is_folder(source: Any) -> bool:
    return isinstance(source, str | Path) and str(source) != "-" and Path(source).is_dir()


def _of_lines(lines: Iterator[Line], reader: _Texts) -> Prompts:
    """A trace's ids, or texts; lines are read once, as standard input is.

    Raises:
        BadFile: nothing that says what prompts hold.
    """
    first = next(lines, None)
    if first is None:
        raise BadFile(f"{reader.source} is empty.")
    whole = chain([first], lines)
    if _is_trace(first[1]):
        reading = Reading(requests=reader.most)
        return from_traffic(read_lines(whole, reader.source, reading))
    if first[1].lstrip()[:1] in (b"{", b"["):
        return reader.all(documents_of(whole, Columns(reader.source)))
    return reader.all((number, _line(line)) for number, line in whole)


def _is_trace(line: bytes) -> bool:
    """Whether a first line is that of a trace: ids of blocks, or columns of lengths."""
    if line.lstrip()[:1] != b"{":
        return line.lstrip()[:1] != b"[" and table.is_header(line)
    row = row_of(line)
    return isinstance(row, dict) and any(fmt.claims(row) for fmt in (bailian, mooncake, agentic))


def _files(folder: Path) -> Iterator[bytes]:
    """The texts of a folder, by name.

    Raises:
        BadFile: one is larger than 64 MiB.
    """
    for path in sorted(folder.iterdir()):
        if path.is_file():
            if path.stat().st_size > 64 * MIB:
                raise BadFile(f"{path} is larger than {format_bytes(64 * MIB)}.")
            yield path.read_bytes()


def _line(line: bytes) -> Any:
    """A line of text: a JSON text where it is quoted, else itself."""
    value = row_of(line) if line.lstrip()[:1] == b'"' else None
    return line if value is None or isinstance(value, str) else value


def from_traffic(traffic: Traffic) -> Prompts:
    """The prompts of a trace by the ids of their blocks.

    Raises:
        BadFile: the trace has no ids.
    """
    if not len(traffic.hash_ids):
        raise BadFile(
            f"{traffic.source} has lengths but no ids of blocks: nothing tells what is shared.",
            "Pass texts, messages, token ids, or a trace with hash_ids.",
        )
    starts = traffic.hash_starts.tolist()
    rows = [
        Prompt(units=(units := traffic.hash_ids[start:end]), kept=units, tokens=tokens)
        for start, end, tokens in zip(
            starts, starts[1:], traffic.prompt_tokens.tolist(), strict=False
        )
    ]
    return Prompts(
        rows=rows,
        source=traffic.source,
        counted="as the trace has them",
        unit_tokens=traffic.hash_block,
        num_skipped=traffic.num_skipped,
        skipped=traffic.skipped,
        notes=traffic.notes,
    )


class _Texts:
    """Collects prompts row by row; a bad one is counted."""

    def __init__(self, source: str, encoder: Encoder, most: int | None) -> None:
        self.source, self.encoder, self.most = source, encoder, most
        self.held = Columns(source)  # counts what is skipped
        self.rows: list[Prompt] = []
        self.units = 0
        self.of_ids = self.of_text = False

    def all(self, rows: Iterable[tuple[int, Any]]) -> Prompts:
        """Every row, as prompts.

        Raises:
            BadFile: no prompt, both texts and ids, or more than can be held.
        """
        for line, row in rows:
            if self.most is not None and len(self.rows) >= self.most:
                break
            try:
                self.rows += self._prompts(row)
            except (BadRow, NoMessages) as why:
                self.held.skip(line, str(why))
            self._check_size()
        if not self.rows:
            first = f" {self.held.skipped[0]}." if self.held.skipped else ""
            raise BadFile(f"There is no prompt in {self.source}.{first}")
        if self.of_ids and self.of_text:
            raise BadFile(f"{self.source} has both texts and ids of tokens.", "Pass one kind.")
        return self._done()

    def _check_size(self) -> None:
        if self.units > MOST_UNITS:
            raise BadFile(f"{self.source} is more than {format_bytes(MOST_UNITS)}.", "Take less.")
        if len(self.rows) > MOST_PROMPTS:
            raise BadFile(f"{self.source} has more than {MOST_PROMPTS:,} prompts.", "Take less.")

    def _done(self) -> Prompts:
        estimated = self.of_text and self.encoder.estimated
        return Prompts(
            rows=self.rows[: self.most],
            source=self.source,
            counted="ids that came" if self.of_ids else self.encoder.name,
            estimated=estimated,
            units_per_token=BYTES_PER_TOKEN if estimated else 1,
            tokenizer=self.encoder if isinstance(self.encoder, Tokenizer) else None,
            num_skipped=self.held.num_skipped,
            skipped=tuple(self.held.skipped),
        )

    def _prompts(self, row: Any) -> list[Prompt]:
        """The prompts of one row.

        Raises:
            BadRow: it has none.
        """
        if isinstance(row, bytes):
            row = _parsed(row)
        if isinstance(row, str):
            return [self._text([Part(row, None)])]
        if isinstance(row, Sequence) and not isinstance(row, bytes):
            return [self._ids(row)] if not _are_messages(row) else [self._text(parts_of(row))]
        if not isinstance(row, dict):
            raise BadRow("neither a text, ids, nor an object")
        return self._of_object(row)

    def _of_object(self, row: dict[str, Any]) -> list[Prompt]:
        messages = messages_of(row)
        body = row["body"] if isinstance(row.get("body"), dict) else row
        if isinstance(row.get("conversations"), list):
            return list(self._chat(messages))
        if messages is not None:
            return [self._text(parts_of(_asked(messages), body.get("tools")))]
        for name in IDS:
            if isinstance(body.get(name), list):
                return [self._ids(body[name])]
        for name in TEXTS:
            value = body.get(name)
            if isinstance(value, str):
                return [self._text([Part(value, None)])]
            if isinstance(value, list):
                return [self._ids(value)]
        raise BadRow(f"no prompt, messages or token ids among {', '.join(map(str, row))[:80]}")

    def _chat(self, messages: Any) -> Iterator[Prompt]:
        """A prompt for each answer, kept with it."""
        check_chat(messages)
        for index, message in enumerate(messages):
            if index and message.get("role") == "assistant":
                yield self._text(parts_of(messages[:index]), content_of(message))
        if messages[-1].get("role") != "assistant":
            yield self._text(parts_of(messages))

    def _text(self, parts: list[Part], answer: str = "") -> Prompt:
        import numpy as np

        text = joined(parts)
        if not text:
            raise BadRow("an empty prompt")
        if len(text) + len(answer) > LONGEST_TEXT:
            raise BadRow(f"a prompt of more than {format_bytes(LONGEST_TEXT)}")
        encode: Callable[[str], Any] = self.encoder.encode
        if self.encoder.estimated:

            def encode(text: str) -> Any:
                return np.frombuffer(text.encode("utf-8", "replace"), np.uint8)

        units = encode(text)
        if not len(units):
            raise BadRow("an empty prompt")
        self.of_text = True
        self.units += len(units)
        per = BYTES_PER_TOKEN if self.encoder.estimated else 1
        return Prompt(
            units=units,
            kept=np.concatenate([units, encode(answer)]) if answer else units,
            tokens=-(-len(units) // per),
            text=text,
            parts=tuple(parts),
        )

    def _ids(self, ids: Sequence[Any]) -> Prompt:
        import numpy as np

        if len(ids) > LONGEST_TEXT:
            raise BadRow(f"a prompt of {len(ids):,} tokens")
        if not ids or not all(type(one) is int and 0 <= one < 1 << 62 for one in ids):
            raise BadRow("ids of tokens that are not whole numbers")
        self.of_ids = True
        self.units += 8 * len(ids)
        units = np.array(ids, np.int64)
        return Prompt(units=units, kept=units, tokens=len(units))


def _parsed(line: bytes) -> Any:
    """A line as a JSON value, else as text.

    Raises:
        BadRow: what begins as an object and is none.
    """
    head = line.lstrip()[:1]
    if head == b"{":
        row = row_of(line)
        if isinstance(row, str):
            raise BadRow(row)
        return row
    return line.decode("utf-8", "replace").strip("\r\n")


def _are_messages(row: Sequence[Any]) -> bool:
    return bool(row) and isinstance(row[0], dict)


def _asked(messages: Any) -> Any:
    """The messages up to the last that was not answered in them."""
    if isinstance(messages, list) and len(messages) > 1 and isinstance(messages[-1], dict):
        return messages[:-1] if messages[-1].get("role") == "assistant" else messages
    return messages
