"""Questions at random, the same ones each time: keys of the API, and the command's words."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kvplan.engines.names import ENGINES
from kvplan.readers import catalogue
from kvplan.readers.devices import devices

Question = tuple[str, dict[str, Any]]


def questions(number: int, seed: int = 8) -> Iterator[Question]:
    """So many, two of three of fit; some are wrong on purpose."""
    chance = random.Random(seed)
    models = [entry.id for entry in catalogue.entries()] + ["qwen3-33b", "gpt2", "llama3.1:8b"]
    cards = [d.name for d in devices()] + ["h100", "rtx 6000", "h1000"]
    for _ in range(number):
        if chance.random() < 0.66:
            yield "fit", _fit(chance, models, cards)
        else:
            yield "size", _size(chance, models)


def _fit(chance: random.Random, models: list[str], cards: list[str]) -> dict[str, Any]:
    engine = chance.choice([*ENGINES, "vllm", "vllm", "vllm"])
    every = {
        "model": chance.choice(models),
        "gpu": chance.choice(cards),
        "gpus": chance.choice([1, 2, 3, 4, 8]),
        "engine": engine,
        "context": chance.choice(["2k", "8192", "32k", "128k", "1m", "lots"]),
        "concurrency": chance.choice([1, 8, 50, 400, 0]),
        "price": chance.choice([0.5, 2.95, 12]),
        "shared_prefix": chance.choice(["1k", "4k"]),
        "bandwidth": "2000GB/s",
        "gpu_memory": chance.choice(["80GB", "24GiB", "80"]),
        "set": ["num_hidden_layers=7"],
    }
    if engine in ("vllm", "sglang"):
        every["kv_cache_dtype"] = chance.choice(["auto", "fp8_e5m2", "int3"])
    if engine == "vllm":
        every |= {"max_model_len": 16384, "enforce_eager": "true", "max_num_seqs": 64}
    kept = {key for key in every if chance.random() < 0.3} | {"model", "gpu", "engine"}
    return {key: value for key, value in every.items() if key in kept}


def _size(chance: random.Random, models: list[str]) -> dict[str, Any]:
    every = {
        "context": chance.choice(["4k", "4k,32k", "1m", ""]),
        "sequences": chance.choice([1, 16, 0]),
        "kv_dtype": chance.choice(["bf16", "fp8", "q8_0", "kivi2", "int3"]),
        "prompt": "8000",
        "output": "200",
        "requests": 20,
        "shared_prefix": "1k",
        "set": ["num_key_value_heads=1"],
    }
    kept = {key: value for key, value in every.items() if chance.random() < 0.4 and value != ""}
    count = chance.choice([1, 1, 1, 2, 3])
    return {"model": chance.sample(models, count) if count > 1 else chance.choice(models)} | kept


def words(verb: str, keys: dict[str, Any]) -> list[str]:
    """The command that asks the same."""
    rest = dict(keys)
    model = rest.pop("model")
    found = [verb, *(model if isinstance(model, list) else [model])]
    for key, value in rest.items():
        name = f"--{key.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:
            found += [name] if one == "true" else [name, str(one)]
    return [*found, "--json", "--offline"]
