"""Static and dynamic caches with torch.compile and without, in a process that may be ended.

    python -m kvplan.lab.compiled '{"model": "a.gguf", "threads": 1, …}'

Compiling can take minutes and cannot be asked to stop, so that the time that it may take is a time
that the process may take. It prints a line a figure; what came before the end is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Final

from kvplan.lab.figures import Compiled
from kvplan.lab.loading import Loaded, load

CACHES: Final = ("full", "static")
PROMPT, WARM, TIMED = 64, 4, 16  # tokens: read, generated before the clock, and with it
COMPILERS: Final = ("g++", "clang++", "c++", "cl")


def compare(loaded: Loaded, seconds: float) -> tuple[Compiled, ...]:
    """Each cache, first without; a row with a sentence in place of what could not be had."""
    asked = {
        "name": loaded.source, "device": loaded.device, "dtype": loaded.dtype,
        "threads": loaded.threads, "offline": True, "compile": _can_compile(loaded.device),
    }  # fmt: skip
    command = [sys.executable, "-m", "kvplan.lab.compiled", json.dumps(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        said, why = done.stdout, f"The process ended: {_last(done.stderr)}"
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        why = f"It was not done in {seconds:,.0f} s."
    if not asked["compile"]:
        why = "There is no C++ compiler, which torch.compile needs on a CPU."
    found = [Compiled(**json.loads(line)) for line in said.splitlines() if line.startswith("{")]
    return (*found, *_missing(found, why))


def _missing(found: list[Compiled], why: str) -> Iterator[Compiled]:
    there = {(row.cache, row.compiled) for row in found}
    for compiled in (False, True):
        for cache in CACHES:
            if (cache, compiled) not in there:
                yield Compiled(cache=cache, compiled=compiled, itl_s=None, compile_s=None, note=why)


def _can_compile(device: str) -> bool:
    named = os.environ.get("CXX", "")
    return device != "cpu" or any(map(shutil.which, (*filter(None, (named,)), *COMPILERS)))


def _last(said: str) -> str:
    return (said.strip().splitlines() or ["it said nothing."])[-1][:200]


def main() -> None:
    """Print a row of figures as each is there."""
    asked = json.loads(sys.argv[1])
    can_compile = asked.pop("compile")
    loaded = load(asked.pop("name"), **asked)
    for compiled in (False, True) if can_compile else (False,):
        for cache in CACHES:
            row = measure(loaded, cache, compiled)
            print(json.dumps(asdict(row)), flush=True)  # noqa: T201


def measure(loaded: Loaded, name: str, compiled: bool) -> Compiled:
    """The time between tokens of a cache, once everything that compiles has compiled."""
    import torch

    from kvplan.lab.kinds import KINDS, Sizes

    sizes = Sizes(tokens=PROMPT + WARM + TIMED, budget=1)
    cache = KINDS[name].make(loaded.config, sizes)
    forward: Callable[..., Any] = loaded.model.forward
    # A dynamic cache has another length at each step: told so at once, it compiles once.
    decode = torch.compile(forward, dynamic=name != "static") if compiled else forward
    with torch.inference_mode():
        ids = torch.arange(5, 5 + PROMPT, device=loaded.device)[None]
        forward(ids, cache=cache, use_cache=True, logits_to_keep=1)
        started = time.perf_counter()
        for _ in range(WARM):
            decode(ids[:, :1], cache=cache, use_cache=True, logits_to_keep=1)
        warmed = time.perf_counter() - started
        times = []
        for _ in range(TIMED):
            started = time.perf_counter()
            decode(ids[:, :1], cache=cache, use_cache=True, logits_to_keep=1).logits.max().item()
            times.append(time.perf_counter() - started)
    itl_s = sorted(times)[len(times) // 2]
    compile_s = max(0.0, warmed - WARM * itl_s) if compiled else None
    return Compiled(cache=name, compiled=compiled, itl_s=itl_s, compile_s=compile_s)


if __name__ == "__main__":
    main()
