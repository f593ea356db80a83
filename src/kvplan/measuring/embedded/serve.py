"""The process that serves: llama.cpp, until its standard input is closed.

    python -m kvplan.measuring.embedded.serve '{"model": "a.gguf", "threads": 1, …}'

The first line of standard output is ``{"address": "http://127.0.0.1:PORT"}``. A server that is
closed right after its start can hang, so it is never closed: the process ends itself.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from kvplan.measuring.embedded.settings import Settings

ON, OFF = "LLAMA_FLASH_ATTN_TYPE_ENABLED", "LLAMA_FLASH_ATTN_TYPE_DISABLED"


def parameters(library: Any, settings: Settings) -> Any:
    """The library's parameters for our settings."""
    found = library.CommonParams()
    found.model.path = settings.model
    found.model_alias = {settings.name}
    found.cpuparams.n_threads = settings.threads
    found.cpuparams_batch.n_threads = settings.threads
    found.n_ctx = settings.context_tokens
    found.n_parallel = settings.slots
    found.kv_unified = settings.unified
    found.cache_type_k = _type(library, settings.cache_type)
    found.cache_type_v = _type(library, settings.cache_type_v or settings.cache_type)
    found.flash_attn_type = getattr(
        library.llama_flash_attn_type, ON if settings.flash_attention else OFF
    )
    found.cache_ram_mib = settings.host_cache_mib
    if settings.slot_folder:
        found.slot_save_path = settings.slot_folder.rstrip("/") + "/"
    found.n_gpu_layers = 0
    found.fit_params = False
    found.warmup = True
    found.endpoint_metrics = found.endpoint_slots = found.endpoint_props = True
    return found


def _type(library: Any, name: str) -> Any:
    return getattr(library.ggml_type, f"GGML_TYPE_{name.upper()}")


def main() -> None:
    """Serve until nobody waits any more."""
    import xllamacpp

    settings = Settings(**json.loads(sys.argv[1]))
    server = xllamacpp.Server(parameters(xllamacpp, settings))
    print(json.dumps({"address": server.listening_address}), flush=True)  # noqa: T201
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
