"""The address of a server, and --watch."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import kvplan
from kvplan.cli import run
from kvplan.core.errors import BadFile, BadValue, KvplanError, SourceUnreachable
from kvplan.logs.metrics.source import MOST_BYTES, address_of, scrape
from tests.logs.metrics import scrapes


class Exporter(BaseHTTPRequestHandler):
    """Answers /metrics with more hits each time; /endless without end."""

    asked = 0

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            return
        self.send_response(200 if self.path in ("/metrics", "/endless") else 404)
        self.end_headers()
        if self.path == "/endless":
            self._endless()
            return
        type(self).asked += 1
        name = 'vllm:prefix_cache_hits_total{engine="0",model_name="Qwen/Qwen3-8B"}'
        text = scrapes.VLLM.replace(f"{name} 400.0", f"{name} {400 + type(self).asked}.0")
        self.wfile.write(text.encode())

    def _endless(self) -> None:
        block = b"vllm:num_requests_running 1\n" * 40_000
        try:
            while True:
                self.wfile.write(block)
        except OSError:
            return

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def server() -> Iterator[str]:
    """A server of its own."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def test_an_address_is_read() -> None:
    """/metrics is the path where none is given; the source of the answer is the address."""
    with server() as url:
        answer = kvplan.explain(url)
        assert url == answer.to_dict()["source"]
        assert 7 == answer.start.number("running_requests")
        assert scrape(f"{url}/metrics").get("kv_usage") == 0.95


@pytest.mark.parametrize(
    ("path", "error"),
    [("/other", SourceUnreachable), ("/moved", SourceUnreachable), ("/endless", BadFile)],
)
def test_what_a_server_may_do(path: str, error: type[KvplanError]) -> None:
    """A path that is not there, a redirect to a file, an answer that never ends."""
    with server() as url, pytest.raises(error):
        scrape(url + path)


@pytest.mark.parametrize("address", ["http://", "http://user:secret@host/", "https://:80"])
def test_addresses_that_are_none(address: str) -> None:
    """No host, or a password that would be shown."""
    with pytest.raises(BadValue) as error:
        address_of(address)
    assert "secret" not in str(error.value)


def test_a_server_that_is_not_there() -> None:
    """What to look at."""
    with pytest.raises(SourceUnreachable, match="--enable-metrics"):
        scrape("http://127.0.0.1:9/metrics")


def test_watching_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A line of JSON a reading, so many as asked for."""
    with server() as url:
        status = run(["explain", url, "--watch", "--count", "3", "--interval", "0.2", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert (0, 3) == (status, len(lines))
    assert [None, 1, 1] == [line["since"].get("prefix_hit_tokens") for line in lines]
    assert lines[0]["figures"]["kv_usage"] == 0.95


def test_watching_a_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plot in the terminal; names of strangers without control characters."""
    dump = tmp_path / "metrics.txt"
    dump.write_text(scrapes.VLLM.replace("Qwen/Qwen3-8B", r"a\nb" + "\x1b[31m"), encoding="utf-8")

    assert 0 == run(["explain", str(dump), "--watch", "--count", "2", "--interval", "0.2"])
    out = capsys.readouterr().out
    assert "cache in use" in out
    assert "95.0%" in out
    assert "\x1b[31m" not in out


@pytest.mark.parametrize(
    ("flags", "status"),
    [(["--interval", "0"], 2), (["--count", "0"], 2), (["--interval", "nan"], 2)],
)
def test_limits_of_a_watch(flags: list[str], status: int, tmp_path: Path) -> None:
    """An interval and a count that can be."""
    dump = tmp_path / "metrics.txt"
    dump.write_text(scrapes.VLLM, encoding="utf-8")

    assert status == run(["explain", str(dump), "--watch", *flags])


def test_dumps_are_bounded(tmp_path: Path) -> None:
    """A file larger than any scrape, and one that is none."""
    large, other = tmp_path / "large", tmp_path / "other"
    with large.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    other.write_text("hello\n", encoding="utf-8")

    for path in (large, other):
        with pytest.raises(BadFile):
            scrape(path)
