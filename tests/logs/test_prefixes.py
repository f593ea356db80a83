"""Whatever is put around a message, it reads the same."""

from __future__ import annotations

import json

import pytest

from kvplan.core.units import GIB
from kvplan.logs.prefixes import messages
from kvplan.logs.read import read_log

SAID = "Available KV cache memory: 39.28 GiB"
VALUE = round(39.28 * GIB)
PLAIN = f"INFO 08-01 10:11:12 [gpu_worker.py:298] {SAID}"

# What a line looks like, and the rank that says it.
WRAPPED: list[tuple[str, str | None]] = [
    (PLAIN, None),
    (f"INFO 08-01 10:11:12 gpu_worker.py:298] {SAID}", None),
    (f"INFO 08-01 10:11:12 [v1/worker/gpu_worker.py:298] {SAID}", None),
    (f"2026-02-12T23:07:32.663270Z  INFO gpu_worker.determine_available_memory: {SAID}", None),
    (f"\x1b[1;36m(EngineCore_0 pid=1159)\x1b[0;0m {PLAIN}", "DP0"),
    (f"[1;36m(EngineCore_DP1 pid=1159)[0;0m {PLAIN}", "DP1"),
    (f"#033[1;36m(EngineCore pid=1159)#033[0;0m {PLAIN}", None),
    (f"(APIServer pid=7) {PLAIN}", None),
    (f"(VllmWorkerProcess pid=812) {PLAIN}", "pid 812"),
    (f"(VllmWorker rank=3 pid=812) {PLAIN}", "rank 3"),
    (f"(VllmWorker TP2 pid=812) {PLAIN}", "TP2"),
    (f"(Worker_TP0 pid=812) {PLAIN}", "TP0"),
    (f"(Worker_PP1 pid=812) {PLAIN}", "PP1"),
    (f"(Worker_TP3_EP3 pid=812) {PLAIN}", "TP3 EP3"),
    (f"(Worker_DP0_TP0_EP0 pid=812) {PLAIN}", "DP0 TP0 EP0"),
    (f"(Worker pid=812) {PLAIN}", None),
    (f"(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=9, ip=10.0.0.2) {PLAIN}", "pid 9"),
    (f"(RayWorkerWrapper pid=9) {PLAIN} [repeated 3x across cluster]", "pid 9"),
    (f"(pid=9) {PLAIN}", None),
    (f"(vLLMHttpServer pid=5) (EngineCore_DP0 pid=9) {PLAIN}", "DP0"),
    (f"(LLMRayActor pid=9) {PLAIN}", None),
    (f"(task, pid=9) {PLAIN}", None),
    (f"vllm-1  | {PLAIN}", None),
    (f"qwen3-1  | (Worker_TP1 pid=3) {PLAIN}", "TP1"),
    (f"[INFO ] PyProcess - W-210-model-stdout: {PLAIN}", None),
    (f"2025-08-01T10:11:12.123456789Z stdout F {PLAIN}", None),
    (f"Aug 01 10:11:12 gpu-host python3[6664]: {PLAIN}", None),
    (f"[pod/vllm-0/server] {PLAIN}", None),
    (f"> {PLAIN}", None),
    (f"> > (Worker_TP0 pid=2) {PLAIN}", "TP0"),
    (f"Capturing CUDA graphs:  89%|████ | 31/35 [00:04<00:00,  2.68it/s]{PLAIN}", None),
    (f"Loading: 10%\rLoading: 100%\r(Worker_TP0 pid=2) {PLAIN}", "TP0"),
    (f"INFO 08-01 10:11:12 [x.py:1] Another one(Worker_TP1 pid=2) {PLAIN}", "TP1"),
    (json.dumps(f"\x1b[1;36m(Worker_TP0 pid=2)\x1b[0;0m {PLAIN}\n") + ",", "TP0"),
    (json.dumps({"log": f"{PLAIN}\n", "stream": "stderr", "time": "2025"}), None),
    (json.dumps({"text": f"first\n(Worker_TP4 pid=2) {PLAIN}\nlast"}), "TP4"),
    (f"{PLAIN}\r", None),
    (f"\ufeff{PLAIN}", None),
    (f"[2025-11-30 12:50:10 DP0 TP1] {SAID}", "DP0 TP1"),
    (f"\x1b]0;title\x07{PLAIN}\x00\x08", None),
]


@pytest.mark.parametrize(("line", "rank"), WRAPPED, ids=[repr(line)[:70] for line, _ in WRAPPED])
def test_a_wrapped_line(line: str, rank: str | None) -> None:
    """The figure and who says it are found behind any prefix."""
    start = read_log(f"before\n{line}\nafter\n").start

    assert start is not None
    fact = start.last("available_kv_bytes")
    assert fact is not None
    assert (VALUE, rank, 2) == (fact.value, fact.rank, fact.line)
    assert fact.text.startswith(SAID) or "determine_available_memory" in fact.text


def test_the_place_that_printed() -> None:
    """The file and its line are told, without the folders."""
    (found,) = messages(PLAIN.replace("gpu_worker", "v1/core/kv_cache_utils"))

    assert (SAID, None, "kv_cache_utils.py:298") == found[:3]


def test_messages_over_each_other() -> None:
    """Two workers whose lines ran together are told apart."""
    found = list(messages(f"(Worker_TP0 pid=1) {PLAIN}(Worker_TP1 pid=2) {PLAIN}"))

    assert [("TP0", SAID), ("TP1", SAID)] == [(m.rank, m.text) for m in found]


def test_a_whole_notebook() -> None:
    """A notebook's file is read as it lies."""
    lines = [f"(Worker_TP0 pid=1) {PLAIN}\n", "INFO [x.py:1] GPU KV cache size: 1,024 tokens\n"]
    cell = {"cell_type": "code", "outputs": [{"output_type": "stream", "text": lines}]}

    for indent in (None, 1):
        start = read_log(json.dumps({"cells": [cell]}, indent=indent) + "\n").start
        assert start is not None
        assert (VALUE, 1024) == (start.number("available_kv_bytes"), start.number("kv_tokens"))
