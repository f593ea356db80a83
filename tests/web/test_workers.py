"""The pool of processes: answers, limits, ends, and what is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kvplan.web.jobs import Job, Reply
from kvplan.web.workers import Kept, Workers, key_of

SIZE = Job("api", "size", {"model": "gpt2"}, offline=True)
# A question that takes long: very many long contexts of several models.
LONG = Job(
    "api",
    "size",
    {"model": ["gpt2"] * 60, "context": ",".join(["1m"] * 1000), "kv_dtype": "kivi2"},
    offline=True,
)


def with_pool(act: Callable[[Workers], Awaitable[None]], **settings: float) -> None:
    async def run() -> None:
        async with Workers(number=1, **settings).running() as pool:
            await act(pool)

    asyncio.run(run())


def test_jobs_are_done() -> None:
    """A worker answers one after the other, and a question that came before is kept."""

    async def act(pool: Workers) -> None:
        first, second = await asyncio.gather(pool.do(SIZE), pool.do(SIZE._replace(verb="fit")))
        assert (200, 36864) == (first.status, json.loads(first.body)["bytes_per_token"])
        assert 400 == second.status
        assert first is await pool.do(SIZE)

    with_pool(act)


def test_a_simulation_waits_until_it_is_compiled() -> None:
    """What no question may take so long for is done before, and once."""

    async def act(pool: Workers) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        pool._compiled, before = done, pool._compiled
        simulate = asyncio.create_task(pool.do(Job("api", "simulate", {}, offline=True)))
        assert 200 == (await pool.do(SIZE)).status
        assert not simulate.done()
        done.set_result(None)
        assert 400 == (await simulate).status
        pool._compiled = before

    with_pool(act)


def test_what_takes_long_ends() -> None:
    """Its process is ended with a sentence, and the next question is answered."""

    async def act(pool: Workers) -> None:
        await pool.do(SIZE)
        pool.limit_s = 0.05
        late = await pool.do(LONG)
        pool.limit_s = 20.0
        after = await pool.do(SIZE._replace(given={"model": "gpt2", "context": "1k"}))
        assert (422, 200) == (late.status, after.status)
        assert "takes longer than the 0.05 s" in json.loads(late.body)["error"]["message"]

    with_pool(act)


def test_a_process_that_ends_is_replaced() -> None:
    """Whoever asked is told, and the next question has a new process."""

    async def act(pool: Workers) -> None:
        await pool.do(SIZE)
        (process,) = pool._alive
        asked = asyncio.create_task(pool.do(LONG))
        await asyncio.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        ended = await asked
        after = await pool.do(SIZE._replace(given={"model": "gpt2", "context": "2k"}))
        assert (422, 200) == (ended.status, after.status)
        assert "has ended" in json.loads(ended.body)["error"]["message"]

    with_pool(act)


def test_nothing_that_is_sent_is_kept() -> None:
    """A log, a config and a header have no key to be kept under."""
    kept = [
        key_of(Job("page", "explain", {"log": "GPU KV cache size: 1 tokens\n"})),
        key_of(Job("page", "fit", {"config": "{}", "gpu": "l4"})),
        key_of(Job("api", "size", {"model": "{}"})),
        key_of(Job("api", "size", {"model": {"model_type": "llama"}})),
        key_of(Job("api", "size", {"model": b"GGUF"})),
        key_of(Job("api", "size", {"model": "x" * 5000})),
    ]

    assert [None] * 6 == kept
    assert key_of(SIZE) == key_of(Job("api", "size", {"model": "gpt2"}, offline=True))


def test_what_is_kept_is_bounded() -> None:
    """By bytes, the longest unused going first."""
    kept = Kept(100)
    for name in "abc":
        kept.put(name, Reply(200, "", b"x" * 12))
    for name in "defghi":
        kept.get("a")
        kept.put(name, Reply(200, "", b"x" * 12))
    kept.put("large", Reply(200, "", b"x" * 50))

    assert kept.get("a") is not None
    assert kept.get("b") is None
    assert kept.get("large") is None


CLOSED = """
import os, sys
from kvplan.web.closed import close
close()
import kvplan
assert kvplan.fit("llama-3.1-8b", gpu="h100").sequences
for act in (open, os.listdir, lambda path: os.open(path, os.O_RDONLY)):
    try:
        act(sys.argv[1])
    except PermissionError:
        continue
    sys.exit("opened")
"""


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc", ".", "../x", "/root"])
def test_a_worker_opens_no_other_file(path: str, tmp_path: Path) -> None:
    """The interpreter itself refuses: whatever a verb would open, by whatever name."""
    (tmp_path / "x").write_text("secret")
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stderr)
