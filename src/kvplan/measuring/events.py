"""Server-sent events out of bytes as they come, bounded.

    data: {"choices": …}⏎⏎      one event; a comment (`: ping`) and other fields are passed over

Format: the HTML standard, section 9.2 (lines end in LF, CRLF or CR; data lines of an event are
joined by LF; what is not ended by an empty line is no event).
"""

from __future__ import annotations

from typing import Final

from kvplan.measuring.failures import MALFORMED, TOO_LARGE, Failed

MOST_LINE: Final = 1 << 20


class Events:
    """The parser of one stream."""

    __slots__ = ("_buffer", "_data", "seen")

    def __init__(self) -> None:
        self._buffer = b""
        self._data: list[bytes] = []
        self.seen = 0  # lines that belong to the format

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that end with these bytes.

        Raises:
            Failed: a line without end, or one that is none of the format.
        """
        buffer = self._buffer + data
        if b"\r" in buffer:
            held = buffer.endswith(b"\r")  # the LF of this CR may still come
            whole = buffer[:-1] if held else buffer
            buffer = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + (b"\r" if held else b"")
        *lines, self._buffer = buffer.split(b"\n")
        if len(self._buffer) > MOST_LINE:
            raise Failed(TOO_LARGE, f"a line of more than {MOST_LINE:,} B")
        return [payload for line in lines if (payload := self._take(line))]

    def _take(self, line: bytes) -> bytes | None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            self.seen += 1
        elif not line:
            if self._data:
                whole = b"\n".join(self._data)
                self._data = []
                return whole
        elif line.startswith((b":", b"event", b"id", b"retry")):
            self.seen += 1
        else:
            raise Failed(MALFORMED, f"no server-sent event: {line[:80]!r}")
        return None
