"""Timing two things in turn, so that a machine whose speed drifts does not favour one."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers"


def seconds(action: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turn(first: Callable[[], object], second: Callable[[], object], runs: int = 9) -> str:
    """Medians of both, and the median of the ratios pair by pair."""
    first()
    second()
    pairs = [(seconds(first), seconds(second)) for _ in range(runs)]
    ours = statistics.median(pair[0] for pair in pairs)
    theirs = statistics.median(pair[1] for pair in pairs)
    ratio = statistics.median(a / b for a, b in pairs)
    return f"{ours:.4f} s against {theirs:.4f} s: ratio {ratio:.3f}"


def command(*words: str) -> Callable[[], object]:
    """A command run to its end, its output thrown away."""
    quiet = subprocess.DEVNULL
    return lambda: subprocess.run(words, stdout=quiet, stderr=quiet, check=True, timeout=60)


def peer(package: str) -> Path | None:
    """The Python of an environment that has a peer's package; None where it cannot be had."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", package]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"  {package} cannot be installed here: not compared", file=sys.stderr)
        return None
    return python
