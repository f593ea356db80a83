"""Measure the models of the peers' table with transformers, at their 32,768 tokens.

    python -m tests.live.measure_peers tests/reference/peers/oracle.json

Where a prefill of that length would run token by token (states scanned in Python), two shorter ones
give the fixed part and the slope, which are exact for such models: nothing else depends on length.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kvplan.readers import catalogue
from tests.live import transformers_oracle as oracle
from tests.peer_models import MODELS, TOKENS

# Not built here: a part of another row, and two that no class or no prefill of text measures.
LEFT_OUT = {"Gemma-3-27B-text", "Whisper-large-v3", "Kimi-K3"}
# The class whose cache is the model's: of composites the text model's, which needs no image.
TEXT = {
    "gemma3": "Gemma3ForCausalLM",
    "llama4": "Llama4ForCausalLM",
    "gemma3n": "Gemma3nForCausalLM",
    "gemma4": "Gemma4ForCausalLM",
    "qwen3_5": "Qwen3_5ForCausalLM",
    "minimax_m3": "MiniMaxM3VLForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
}
SCANNED = {"Jamba-1.5-Mini", "Mamba2-2.7B", "Nemotron-3-Nano", "Qwen3-Next-80B-A3B", "Qwen3.5-27B"}
TEXT_TYPES = {"minimax_m3": "minimax_m3_vl_text", "mamba2": "mamba2"}


def measure(name: str) -> tuple[int, str]:
    """Bytes of one sequence, and how they were measured."""
    found = catalogue.find(MODELS[name])
    assert found is not None
    config = catalogue.config_of(found.entry)
    architecture = TEXT.get(config["model_type"])
    if architecture:
        kind = config["model_type"]
        config = dict(config.get("text_config") or config)
        config["model_type"] = TEXT_TYPES.get(kind, f"{kind}_text")
        config["architectures"] = [architecture]
    model = oracle.build(config)
    if name not in SCANNED:
        return oracle.cache_bytes(model, TOKENS), f"a prefill of {TOKENS:,} tokens"
    few, more = oracle.cache_bytes(model, 4), oracle.cache_bytes(model, 12)
    slope = (more - few) // 8
    return few + slope * (TOKENS - 4), "prefills of 4 and 12 tokens: a fixed part and a slope"


def main(target: str) -> None:
    """Write what could be measured; what could not says why."""
    import transformers

    rows = {}
    for name, model in MODELS.items():
        if name in LEFT_OUT:
            continue
        try:
            size, how = measure(name)
            rows[name] = {"model": model, "bytes": size, "how": how}
        except Exception as error:
            rows[name] = {"model": model, "bytes": None, "how": str(error)[:200]}
        print(name, rows[name], flush=True)
    answer = {"transformers": transformers.__version__, "tokens": TOKENS, "models": rows}
    Path(target).write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
