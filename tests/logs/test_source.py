"""Any source, of any size, whatever it holds: an answer or a sentence, in constant memory."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvplan.core.errors import BadFile, BadValue, KvplanError, SourceUnreachable
from kvplan.logs.read import read_log
from kvplan.logs.source import LONGEST_LINE, Source

SAID = "INFO 08-01 10:11:12 [kv_cache_utils.py:864] GPU KV cache size: 1,024 tokens\n"
TRAFFIC = "".join(
    f'INFO:     10.0.0.{n}:4411 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    "(APIServer pid=1) INFO 11-30 12:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 12.3 "
    "tokens/s, Running: 1 reqs, GPU KV cache usage: 3.2%, Prefix cache hit rate: 12.0%\n"
    for n in range(200)
)


def tokens(source: Source) -> object:
    start = read_log(source).start
    return start and start.number("kv_tokens")


@pytest.mark.parametrize(
    "data",
    [
        SAID.encode(),
        SAID.encode().rstrip(),
        b"\xff\xfe" + SAID.encode("utf-16-le"),
        b"\xfe\xff" + SAID.encode("utf-16-be"),
        b"\xef\xbb\xbf" + SAID.encode(),
        b"\0" * 4096 + SAID.encode(),
        SAID.replace("\n", "\r\n").encode(),
        b"\xff\xc3\x28 broken utf-8\n" + SAID.encode(),
        b"\n" * 100_000 + SAID.encode(),
    ],
)
def test_texts(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, a file and standard input read alike, in the encodings that shells write."""
    path = tmp_path / "a.log"
    path.write_bytes(data)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert (1024, 1024, 1024, 1024) == (tokens(data), tokens(path), tokens(str(path)), tokens("-"))


REFUSED: list[tuple[bytes, str]] = [
    (bytes(range(256)) * 64, "binary"),
    (b"\0" * 100_000, "binary"),
    (b"GGUF\x03\0\0\0" + b"\0" * 100, "model file"),
    (b"\x1f\x8b\x08\0" + b"x" * 100, "gzip -dc"),
    (b"PK\x03\x04" + b"x" * 100, "zip"),
    (b"\x28\xb5\x2f\xfd" + b"x" * 100, "zstd"),
]


@pytest.mark.parametrize(("data", "said"), REFUSED)
def test_what_is_no_text(data: bytes, said: str) -> None:
    """A binary file is refused by what it is."""
    with pytest.raises(BadFile) as caught:
        read_log(data)

    assert said in str(caught.value)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    """A missing file, a folder and an empty name are sentences."""
    with pytest.raises(SourceUnreachable, match="No such file"):
        read_log(str(tmp_path / "none.log"))
    with pytest.raises(BadValue, match="folder"):
        read_log(tmp_path)
    with pytest.raises(KvplanError):
        read_log("")


def test_an_empty_log() -> None:
    """Nothing in it is no start."""
    assert () == read_log(b"").starts


def test_a_line_without_an_end() -> None:
    """Of a line of 100 MB the beginning is read, and that it is cut is said."""
    log = read_log(
        SAID.encode() + b"GiB" * (100 << 20) + b"\n" + SAID.replace("1,0", "2,0").encode()
    )

    assert 2024 == (log.start and log.start.number("kv_tokens"))
    assert [
        f"1 lines are longer than {LONGEST_LINE >> 20} MiB: only their beginnings are read."
    ] == [*log.notes]


def test_a_marked_line_of_megabytes() -> None:
    """A line full of marks and brackets is read in time that its length allows."""
    line = ("(EngineCore pid=" + "[1;36m(" * 50 + "args: Namespace(" + "a=[{(" * 50) * 4000
    before = time.process_time()
    read_log((line + "\n" + SAID).encode())

    assert time.process_time() - before < 5


def test_a_line_of_many_messages() -> None:
    """Thousands of messages on one line are told apart without reading the line for each."""
    line = "INFO 08-01 10:00:00 GiB " * 5000
    before = time.process_time()
    read_log((line + "\n").encode())

    assert time.process_time() - before < 3


def test_speed() -> None:
    """A server's log of a day reads at the speed of a search: 50 MB/s at the least."""
    data = (SAID + TRAFFIC * 1000).encode()
    before = time.process_time()
    log = read_log(data)
    spent = time.process_time() - before

    assert 1024 == (log.start and log.start.number("kv_tokens"))
    assert len(data) / spent > 50e6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's peak of memory")
def test_memory() -> None:
    """A log of 256 MB (of 2 GB with KVPLAN_LARGE) is read within 200 MB."""
    script = (
        "from pathlib import Path\n"
        "from kvplan.logs.read import read_log\n"
        "log = read_log('-')\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(log.lines, status.partition('VmHWM:')[2].split()[0])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False
    )
    assert process.stdin is not None
    assert process.stdout is not None
    block = (SAID + TRAFFIC * 20).encode()
    count = (2048 if os.environ.get("KVPLAN_LARGE") else 256) * (1 << 20) // len(block)
    for _ in range(count):
        process.stdin.write(block)
    process.stdin.close()
    lines, kib = process.stdout.read().split()
    process.stdout.close()

    assert 0 == process.wait()
    assert count * block.count(b"\n") == int(lines)
    assert int(kib) < 200_000
