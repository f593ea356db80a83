"""``kvplan measure`` as a person calls it: folders, comparison, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvplan.cli import run
from kvplan.measuring.client import Address
from tests.measuring.caching_server import Caching, caching

QUICK = ["--prompt", "32", "--output", "3", "--concurrency", "1", "--requests", "2"]


def test_a_measurement_is_shown_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables on the terminal, everything in the folder, a page that opens alone."""
    with caching(Caching()) as made:
        status = run(["measure", made.address, *QUICK, "-o", str(tmp_path / "a")])
    shown = capsys.readouterr().out
    page = (tmp_path / "a" / "report.html").read_text()

    assert 0 == status
    assert "m on vllm 0.19.0" in shown
    assert "warm, 32 tokens, 1 at once, reuse off" in shown
    assert {
        "answer.json", "environment.json", "requests.parquet", "chunks.parquet",
        "server.parquet", "report.html",
    } == {path.name for path in (tmp_path / "a").iterdir()}  # fmt: skip
    assert "<h1>m on vllm 0.19.0</h1>" in page
    assert "src=&quot;http" not in page


def test_two_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``measure compare A B`` says what is better, worse and the same."""
    for name in ("a", "b"):
        with caching(Caching()) as made:
            run(["measure", made.address, *QUICK, "-o", str(tmp_path / name)])
    capsys.readouterr()
    status = run(["measure", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert (0, "compare") == (status, answer["verb"])
    assert "same" in {row["verdict"] for row in answer["rows"] if row["name"] == "cached_tokens"}

    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert 0 == run(["measure", "compare", *folders, "-o", str(tmp_path / "both.svg")])
    assert "output tokens/s" in (tmp_path / "both.svg").read_text()


def test_a_server_whose_requests_all_fail_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was measured: exit status 1, and the kinds of failure are shown."""
    with caching(Caching(fails=lambda n: n > 1)) as made:
        status = run(["measure", made.address, *QUICK, "--prefix", "off"])

    assert 1 == status
    assert "2 (2 http_503)" in capsys.readouterr().out


REFUSED = {
    "nobody listens": (["http://127.0.0.1:9"], 3, "does not answer"),
    "no server is named": ([], 2, "No server is named"),
    "no address": (["http://"], 2, "An address is http://HOST:PORT"),
    "a password in the address": (["http://me:pass@localhost"], 2, "without a name and password"),
    "another scheme": (["ftp://localhost"], 2, "An address is http://HOST:PORT"),
    "a length of nothing": (["http://127.0.0.1:9", "--prompt", "0"], 2, "--prompt 0"),
    "no rate": (["http://127.0.0.1:9", "--rate", "-1"], 2, "--rate -1"),
    "no concurrency": (["http://127.0.0.1:9", "--concurrency", "0"], 2, "--concurrency 0"),
    "no such prefix": (["http://127.0.0.1:9", "--prefix", "some"], 2, "Known: on, off, both"),
    "a prefix of all": (
        ["http://127.0.0.1:9", "--prompt", "64", "--shared-prefix", "64"], 2, "leaves nothing",
    ),
    "no length": (["http://127.0.0.1:9", "--prompt", ","], 2, "--prompt names none"),
    "no loops": (["http://127.0.0.1:9", "--concurrency", ""], 2, "--concurrency names none"),
    "two servers": (["http://127.0.0.1:9", "--embedded"], 2, "are two servers"),
    "weights of another": (["http://127.0.0.1:9", "--weights", "a.gguf"], 2, "are two servers"),
    "no such card": (["http://127.0.0.1:9", "--gpu", "abacus"], 2, "abacus"),
    "a picture in no folder": (
        ["http://127.0.0.1:9", "-o", f"{__file__}/a.svg"], 3, "cannot be written",
    ),
    "a folder that is a file": (["http://127.0.0.1:9", "-o", __file__], 3, "cannot be written"),
    "one folder": (["compare", "/nowhere"], 2, "A comparison is of two folders"),
    "no folder": (["compare", "/nowhere", "/either"], 3, "cannot be read"),
    "no weights": (["--embedded", "--weights", "/nowhere.gguf"], 3, "cannot be read"),
    "weights that are none": (["--embedded", "--weights", __file__], 2, "is no GGUF file"),
    "weights that were never fetched": (["--embedded", "--offline"], 3, "--weights FILE.gguf"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence and an exit status, never a traceback."""
    words, status, said = REFUSED[name]

    assert status == run(["measure", *words])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.0.0.7:8000", False),
        ("https://api.example.org/v1", False),
    ],
)
def test_this_machine_is_told_from_others(address: str, expected: bool) -> None:
    """Load on another machine is warned of, by its name alone."""
    assert expected == Address(address).is_loopback


def test_load_on_another_machine_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first request."""
    run(["measure", "http://192.0.2.1:1", *QUICK, "--timeout", "1"])

    assert "is another machine: this puts load on it" in capsys.readouterr().err
