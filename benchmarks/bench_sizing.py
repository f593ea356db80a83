"""Models a second: parsed configs sized from Python, parameters counted, beside kvfit.

kvfit refuses most types; both are timed on the configs that both answer, and ours on all.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kvplan
from benchmarks.timing import peer
from kvplan.core.errors import KvplanError

CONFIGS = Path(__file__).parent.parent / "tests" / "reference" / "configs"
COUNT = 10_000

# Runs in the peer's environment: reads paths on standard input, prints those it answers and how
# many models a second it sizes.
PEER = """
import json, sys, time
from kvfit.architectures import estimate_cache
paths, configs = [line.strip() for line in sys.stdin], {}
for path in paths:
    config = json.load(open(path))
    try:
        estimate_cache(config, context_tokens=32768)
        configs[path] = config
    except Exception:
        pass
done, start = 0, time.perf_counter()
while done < 2000 and configs:
    for config in configs.values():
        estimate_cache(config, context_tokens=32768)
    done += len(configs)
print(json.dumps([list(configs), done / (time.perf_counter() - start)]))
"""


def answered() -> dict[str, dict[str, Any]]:
    """The published configs that kvplan answers, by path."""
    found = {}
    for path in sorted(CONFIGS.glob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        try:
            kvplan.size(config)
            found[str(path)] = config
        except KvplanError:
            continue
    return found


def rate(
    configs: list[dict[str, Any]], count: int, ask: Callable[[dict[str, Any]], object]
) -> float:
    """Models a second; none of no configs."""
    if not configs:
        return 0.0
    done, start = 0, time.perf_counter()
    while done < count:
        for config in configs:
            ask(config)
        done += len(configs)
    return done / (time.perf_counter() - start)


def ask(config: dict[str, Any]) -> object:
    """A size at one length, its parameters counted."""
    answer = kvplan.size(config, context=32768)
    return answer.bytes(32768), answer.model.weights and answer.model.weights.parameters


def main() -> None:
    """All that we answer, then those that both do."""
    configs = answered()
    print(f"kvplan: {rate(list(configs.values()), COUNT, ask):,.0f} models/s over {len(configs)}")
    python = peer("kvfit")
    if python is None:
        return
    done = subprocess.run(
        [str(python), "-c", PEER],
        input="\n".join(configs),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        print(f"kvfit did not answer: {done.stderr.strip().splitlines()[-1][:120]}")
        return
    paths, theirs = json.loads(done.stdout)
    if not paths:
        print("kvfit answers none of them")
        return
    ours = rate([configs[path] for path in paths], 2000, ask)
    print(
        f"on the {len(paths)} that kvfit answers: {ours:,.0f} against {theirs:,.0f} models/s: "
        f"ratio {ours / theirs:.2f} (ours counts parameters too)"
    )


if __name__ == "__main__":
    main()
