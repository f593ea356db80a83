"""Many headers at once: side by side, in order, with a bar on a terminal alone."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from kvplan.core.errors import SourceUnreachable
from kvplan.readers import in_parallel as waiting
from kvplan.readers.in_parallel import WORKERS, in_parallel

NAMES = [str(place) for place in range(3 * WORKERS)]


def test_side_by_side_and_in_order() -> None:
    """As many at once as there are workers; the answers in the order of the names."""
    met = threading.Barrier(WORKERS, timeout=2)

    def act(name: str) -> str:
        met.wait()
        return name

    assert NAMES == in_parallel(act, NAMES, "Headers")


def test_the_first_that_fails_ends_all() -> None:
    """What has not begun does not begin."""
    begun = []

    def act(name: str) -> None:
        begun.append(name)
        time.sleep(0.01)
        raise SourceUnreachable("No.")

    with pytest.raises(SourceUnreachable, match="No"):
        in_parallel(act, NAMES, "Headers")
    assert len(begun) < len(NAMES)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
    fails: bool,
) -> None:
    """On stderr, where it takes more than a moment, and gone with the last answer."""
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)

    def act(name: str) -> int:
        time.sleep(0.005)
        return 1 // (0 if fails and name == "9" else 1)

    if fails:
        with pytest.raises(ZeroDivisionError):
            in_parallel(act, NAMES, "Headers of org/name")
    else:
        assert [1] * len(NAMES) == in_parallel(act, NAMES, "Headers of org/name")
    printed = capsys.readouterr()
    assert ("", is_terminal) == (printed.out, "Headers of org/name" in printed.err)
