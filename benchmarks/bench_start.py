"""Cold start: `kvplan size llama-3.1-8b` from a new process, beside the peers' own commands.

The peers ask the network for a model, which is no fair race; what can be compared is how long each
takes to be ready: their `--help`, and an import of their estimator.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.timing import command, in_turn, peer

OURS = str(Path(sys.executable).parent / "kvplan")


def main() -> None:
    """Ours answers a question; theirs print their help."""
    ask = command(OURS, "size", "llama-3.1-8b", "--offline")
    print(f"kvplan size llama-3.1-8b against python -c pass: {_ratio(ask, sys.executable)}")
    for package, module in (("hf-mem", "hf_mem.cli"), ("kvfit", "kvfit.cli")):
        python = peer(package)
        if python is not None:
            ready = command(str(python), "-c", f"import {module}")
            print(f"kvplan size llama-3.1-8b against importing {module}: {in_turn(ask, ready)}")


def _ratio(ask: object, python: str) -> str:
    return in_turn(ask, command(python, "-c", "pass"))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
