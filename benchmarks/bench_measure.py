"""The overhead of `measure`: streams a second against a server that answers at once.

    python -m benchmarks.bench_measure

Client and server share two cores. The server computes nothing, so that the time to the first token
is what client, server and socket add. Beside it guidellm on the same server, in an environment of
its own (.venv-clients; torch is pinned as an unpinned one brings several GB).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import kvplan
from benchmarks.timing import ROOT

PEER: Final = ROOT / ".venv-clients"
TOKENS: Final = 16
RATE: Final = 320  # a second
REQUESTS: Final = 3000
TURNS: Final = 3


class Timed(NamedTuple):
    """Streams a second, and milliseconds to the first token."""

    per_s: float
    p50_ms: float
    p99_ms: float

    def __str__(self) -> str:
        return f"{self.per_s:,.0f}/s, TTFT p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f} ms"


@contextmanager
def instant() -> Iterator[str]:
    """The server's address while the context lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.instant_server"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def ours(address: str, rate: float | None, concurrency: int | None) -> Timed:
    """Open at a rate, or closed with so many in flight."""
    run = kvplan.measure(
        address, prompt=32, output=TOKENS, prefix="off", requests=REQUESTS,
        rate=rate, concurrency=concurrency,
    ).runs[0]  # fmt: skip
    assert not run.failed
    assert run.output_tokens == TOKENS * REQUESTS
    return Timed(run.requests_per_s, (run.ttft_s["p50"] or 0) * 1e3, (run.ttft_s["p99"] or 0) * 1e3)


def peer() -> Path | None:
    """The command of guidellm; None where it cannot be had."""
    command = PEER / "bin" / "guidellm"
    if not command.exists():
        venv.create(PEER, with_pip=True)
        install = [str(PEER / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run(
            [*install, "--only-binary", ":all:", "torch==2.13.0", "guidellm"], check=False
        )
    return command if command.exists() else None


def theirs(command: Path, address: str, profile: str) -> Timed:
    """The same requests by guidellm."""
    with tempfile.TemporaryDirectory() as folder:
        prompts, out = Path(folder) / "prompts.jsonl", Path(folder) / "out.json"
        prompts.write_text(
            "\n".join(
                json.dumps(
                    {"prompt": f"the of and to in is was {i}", "output_tokens_count": TOKENS}
                )
                for i in range(REQUESTS)
            )
        )
        subprocess.run(
            [
                str(command), "run", "--disable-console",
                "--backend", f"kind=openai_http,target={address},model=instant",
                "--profile", profile, "--constraint", f"kind=max_requests,count={REQUESTS}",
                "--data", f"kind=json_file,path={prompts}", "--output", f"kind=json,path={out}",
            ],
            check=True, capture_output=True, timeout=600, env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        metrics = json.loads(out.read_text())["benchmarks"][0]["metrics"]
    first = metrics["time_to_first_token_ms"]["successful"]
    return Timed(
        metrics["requests_per_second"]["successful"]["mean"],
        first["median"],
        first["percentiles"]["p99"],
    )


def main() -> None:
    """Both in turn, a few times; the best of each, since other work only slows one down."""
    command = peer()
    ways = (
        (f"open loop, {RATE}/s", RATE, None, f"kind=constant,rate={RATE}"),
        ("closed loop, 8 in flight", None, 8, "kind=concurrent,streams=8"),
    )
    for name, rate, concurrency, profile in ways:
        own, other = [], []
        for _ in range(TURNS):
            with instant() as address:
                own.append(ours(address, rate, concurrency))
                if command is not None:
                    other.append(theirs(command, address, profile))
        print(f"{name}, {TOKENS} tokens a stream")
        print(f"  kvplan measure: {min(own, key=lambda one: one.p50_ms)}")
        if other:
            print(f"  guidellm:       {min(other, key=lambda one: one.p50_ms)}")


if __name__ == "__main__":
    main()
