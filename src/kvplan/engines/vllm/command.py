"""The command that starts vLLM so: what was given, and the layout that was chosen."""

from __future__ import annotations

import json
import shlex
from typing import Any

from kvplan.core.model import Model
from kvplan.engines.base import Asked
from kvplan.engines.vllm.layout import Layout

CPU_SPACE = "--cpu-kvcache-space"  # VLLM_CPU_KVCACHE_SPACE
OWN = (
    CPU_SPACE, "--usage-context", "--device", "--draft-layers", "--draft-kv-heads",
    "--draft-head-dim",
    "--lmcache-max-local-cpu-size", "--lmcache-chunk-size",
)  # fmt: skip
GIB_FLAGS = ("--swap-space", "--cpu-offload-gb", "--kv-offloading-size")


def command(model: Model, asked: Asked, layout: Layout) -> str:
    """``vllm serve`` with flags in vLLM's spelling."""
    sizes = {
        "--tensor-parallel-size": layout.tp,
        "--pipeline-parallel-size": layout.pp,
        "--data-parallel-size": layout.replicas,
    }
    given = {flag: value for flag, value in sizes.items() if value > 1} | dict(asked.flags)
    space = given.get(CPU_SPACE)
    words = [] if space is None else [f"VLLM_CPU_KVCACHE_SPACE={space >> 30}"]
    words += ["vllm", "serve", shlex.quote(model.name)]
    for flag, value in given.items():
        if flag in OWN or value is False:
            continue
        words.append(flag)
        if value is not True:
            words.append(shlex.quote(_text(flag, value)))
    return " ".join(words)


def _text(flag: str, value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    if flag in GIB_FLAGS:
        return f"{value / (1 << 30):g}"
    return str(value)
