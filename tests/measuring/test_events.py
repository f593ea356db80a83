"""Server-sent events: the same however the bytes are cut."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.measuring.events import MOST_LINE, Events
from kvplan.measuring.failures import Failed

STREAMS = {
    "LF": (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "CR": (b"data: a\r\rdata: b\r\r\n", [b"a", b"b"]),
    "no space": (b"data:a\n\n", [b"a"]),
    "one space of two": (b"data:  a\n\n", [b" a"]),
    "several lines": (b"data: {\ndata: }\n\n", [b"{\n}"]),
    "comments and other fields": (b": ping\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
    "cut short": (b"data: a\n\ndata: b\n", [b"a"]),
}


@pytest.mark.parametrize("name", STREAMS)
@given(cut=st.integers(1, 7))
def test_events_are_the_same_however_they_are_cut(name: str, cut: int) -> None:
    """Pieces of any size give the events of the whole."""
    data, expected = STREAMS[name]
    events = Events()
    found = [e for i in range(0, len(data), cut) for e in events.feed(data[i : i + cut])]

    assert expected == found


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"<html>\n", "malformed"), (b"x" * (MOST_LINE + 1), "too_large"), (b"\xff\n", "malformed")],
)
def test_what_is_no_event_is_told(data: bytes, kind: str) -> None:
    """Another format ends the stream, and so does a line without end."""
    with pytest.raises(Failed) as caught:
        Events().feed(data)

    assert kind == caught.value.kind


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No bytes do anything else."""
    with suppress(Failed):
        assert all(isinstance(one, bytes) for one in Events().feed(data))
