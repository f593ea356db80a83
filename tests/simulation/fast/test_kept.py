"""Where the compiled engine is kept, and what is said before it is compiled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvplan.simulation.fast import kept


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    """What is remembered for a process is forgotten before and after."""
    for remembered in (kept.folder, kept.tell_first_time):
        remembered.cache_clear()
    yield
    for remembered in (kept.folder, kept.tell_first_time):
        remembered.cache_clear()


def test_it_is_kept_where_numba_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))

    assert tmp_path / "numba" == kept.folder().parent


@pytest.mark.parametrize("own_is_writable", [True, False])
def test_it_is_kept_elsewhere_where_that_cannot_be_written(
    own_is_writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the user's caches, else in a folder that lasts as long as the run."""
    (tmp_path / "file").write_text("in the way")
    own = tmp_path if own_is_writable else tmp_path / "file"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "numba"))
    monkeypatch.setenv("KVPLAN_CACHE", str(own))
    base = kept.folder().parent

    assert own_is_writable == (base == tmp_path / "compiled")
    assert base.is_dir()


def test_the_wait_is_said_once_and_only_before_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.INFO, "kvplan"):
        kept.tell_first_time()
        kept.tell_first_time()
        assert 1 == len(caplog.messages)

        kept.tell_first_time.cache_clear()
        inner = kept.folder() / "fast_0123"
        inner.mkdir(parents=True)
        (inner / "clock.run-1.py311.nbi").touch()
        kept.tell_first_time()

    assert ["Compiling the simulator: once, about half a minute."] == caplog.messages
