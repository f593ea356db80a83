"""Starts a real llama.cpp server of its own and prints its log; ends it hard, whatever it does.

    python llamacpp_server.py MODEL.gguf '{"n_ctx": 4096, "cache_type_k": "q8_0"}'

A server that is closed right after its start can hang, so nobody waits for it: the process ends
itself once the log says that the slots are there, or after a minute.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import xllamacpp

TYPES = ("cache_type_k", "cache_type_v")


def parameters(model: str, asked: dict[str, object]) -> xllamacpp.CommonParams:
    found = xllamacpp.CommonParams()
    found.model.path = model
    found.cpuparams.n_threads = 1
    found.warmup = False
    found.fit_params = False
    found.verbosity = 10
    for name, value in asked.items():
        setattr(found, name, constant(name, value))
    return found


def constant(name: str, value: object) -> object:
    """The library's constant where a parameter takes one."""
    if name in TYPES:
        return getattr(xllamacpp.ggml_type, f"GGML_TYPE_{str(value).upper()}")
    if name == "flash_attn_type":
        return getattr(xllamacpp.llama_flash_attn_type, str(value))
    return value


def main() -> None:
    model, asked = sys.argv[1], json.loads(sys.argv[2])
    ready = threading.Event()

    def serve() -> None:
        server = xllamacpp.Server(parameters(model, asked))
        ready.server = server  # type: ignore[attr-defined]
        ready.set()

    threading.Thread(target=serve, daemon=True).start()
    ready.wait(60)
    time.sleep(0.2)  # the log is written by a thread of its own
    sys.stdout.flush()
    os._exit(0 if ready.is_set() else 1)


if __name__ == "__main__":
    main()
