"""Write the catalogue of the package from a folder of published configs with provenance.

    python tools/build_catalogue.py tests/reference/configs src/kvplan/data/models

Each model keeps its config as published, one file a model; ``index.json`` has the names that lead
to it, where it is from, and how good a copy it is. Files that are no facts about a model (reduced
test files, mislabelled ones) are left out.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from kvplan.readers.catalogue import fold

# Reduced test files, a mislabelled one, and copies that name no published model.
LEFT_OUT = ("reduced-test--", "mislabelled--", "mistralai--Mistral-ome-", "google--gemma-3-ome-")
# An alias with one of these words has the shapes of the file's model, not its weights.
OTHER_WEIGHTS = re.compile(
    r"awq|gptq|fp8|nvfp4|int4|int8|w4a|w8a|q4|q8|iq4|quant|geometry|sibling|twin|backbone", re.I
)
# Endings and beginnings that people leave out of a name.
ENDINGS = ("instruct", "it", "hf", "chat", "base", "bf16")
BEGINNINGS = ("", "meta-", "nvidia-", "ai21-", "c4ai-")
# A copy whose own word leaves out keys that shape its tensors.
NOT_WHOLE = ("LiquidAI--LFM2-2.6B.json",)
LONG_LIST = 200  # entries; a checkpoint's list of unquantised modules can have 50,000

# The published model that another project's preset or copy transcribes.
TRANSCRIBED = {
    "meta-llama/Llama-3.1-405B": "meta-llama/Llama-3.1-405B-Instruct-FP8",
    "mlc-preset/Mixtral-8x7B-v0.1": "mistralai/Mixtral-8x7B-v0.1",
    "mlc-preset/aya-23": "CohereLabs/aya-23-8B",
    "mlc-preset/baichuan": "baichuan-inc/Baichuan-7B",
    "mlc-preset/chatglm": "THUDM/chatglm3-6b",
    "mlc-preset/codellama_13b": "codellama/CodeLlama-13b-hf",
    "mlc-preset/codellama_34b": "codellama/CodeLlama-34b-hf",
    "mlc-preset/codellama_7b": "codellama/CodeLlama-7b-hf",
    "mlc-preset/deepseek": "deepseek-ai/deepseek-moe-16b-base",
    "mlc-preset/deepseek_v2_lite": "deepseek-ai/DeepSeek-V2-Lite",
    "mlc-preset/gemma2_27b": "google/gemma-2-27b-it",
    "mlc-preset/gemma2_2b": "google/gemma-2-2b-it",
    "mlc-preset/gemma2_2b-jpn": "google/gemma-2-2b-jpn-it",
    "mlc-preset/gemma2_9b": "google/gemma-2-9b-it",
    "mlc-preset/gemma3_1b_it": "google/gemma-3-1b-it",
    "mlc-preset/gemma_2b": "google/gemma-2b",
    "mlc-preset/gpt2": "openai-community/gpt2",
    "mlc-preset/gpt2_medium": "openai-community/gpt2-medium",
    "mlc-preset/gpt_bigcode": "bigcode/gpt_bigcode-santacoder",
    "mlc-preset/gpt_j": "EleutherAI/gpt-j-6b",
    "mlc-preset/internlm": "internlm/internlm-7b",
    "mlc-preset/internlm2": "internlm/internlm2-7b",
    "mlc-preset/internlm2_5_7b": "internlm/internlm2_5-7b-chat",
    "mlc-preset/llama2_13b": "meta-llama/Llama-2-13b-hf",
    "mlc-preset/llama2_70b": "meta-llama/Llama-2-70b-hf",
    "mlc-preset/llama2_7b": "meta-llama/Llama-2-7b-hf",
    "mlc-preset/llama3_1_70b": "meta-llama/Llama-3.1-70B",
    "mlc-preset/llama3_1_8b": "meta-llama/Llama-3.1-8B",
    "mlc-preset/llama3_2_1b": "meta-llama/Llama-3.2-1B",
    "mlc-preset/llama3_2_3b": "meta-llama/Llama-3.2-3B",
    "mlc-preset/llava": "llava-hf/llava-1.5-7b-hf",
    "mlc-preset/minicpm-moe-8x2b": "openbmb/MiniCPM-MoE-8x2B",
    "mlc-preset/minicpm_2b": "openbmb/MiniCPM-2B-dpo-bf16",
    "mlc-preset/minicpm_2b_sft_bf16": "openbmb/MiniCPM-2B-sft-bf16",
    "mlc-preset/ministral3_3b_2512": "mistralai/Ministral-3-3B-Instruct-2512",
    "mlc-preset/mistral_7b": "mistralai/Mistral-7B-v0.1",
    "mlc-preset/mistral_7b_v03": "mistralai/Mistral-7B-Instruct-v0.3",
    "mlc-preset/olmo2_13b": "allenai/OLMo-2-1124-13B",
    "mlc-preset/olmo2_32b": "allenai/OLMo-2-0325-32B",
    "mlc-preset/olmo2_7b": "allenai/OLMo-2-1124-7B",
    "mlc-preset/orion": "OrionStarAI/Orion-14B-Chat",
    "mlc-preset/phi-1_5": "microsoft/phi-1_5",
    "mlc-preset/phi-2": "microsoft/phi-2",
    "mlc-preset/phi-3_5": "microsoft/Phi-3.5-mini-instruct",
    "mlc-preset/phi-3_5-vision": "microsoft/Phi-3.5-vision-instruct",
    "mlc-preset/phi-4": "microsoft/Phi-4-mini-instruct",
    "mlc-preset/qwen": "Qwen/Qwen-1_8B",
    "mlc-preset/qwen2": "Qwen/Qwen1.5-1.8B-Chat",
    "mlc-preset/qwen2.5_3b": "Qwen/Qwen2.5-3B",
    "mlc-preset/qwen2_0_5b": "Qwen/Qwen2-0.5B",
    "mlc-preset/qwen2_1_5b": "Qwen/Qwen2-1.5B",
    "mlc-preset/qwen2_7b": "Qwen/Qwen2-7B",
    "mlc-preset/qwen2moe": "Qwen/Qwen1.5-MoE-A2.7B",
    "mlc-preset/qwen3_0.6b": "Qwen/Qwen3-0.6B",
    "mlc-preset/qwen3_1.7b": "Qwen/Qwen3-1.7B",
    "mlc-preset/redpajama_3b_v1": "togethercomputer/RedPajama-INCITE-Chat-3B-v1",
    "mlc-preset/rwkv5_3b": "RWKV/rwkv-5-world-3b",
    "mlc-preset/smollm2_135m": "HuggingFaceTB/SmolLM2-135M-Instruct",
    "mlc-preset/smollm2_360m": "HuggingFaceTB/SmolLM2-360M-Instruct",
    "mlc-preset/smollm_135m": "HuggingFaceTB/SmolLM-135M-Instruct",
    "mlc-preset/smollm_1_7b": "HuggingFaceTB/SmolLM-1.7B-Instruct",
    "mlc-preset/smollm_360m": "HuggingFaceTB/SmolLM-360M-Instruct",
    "mlc-preset/snowflake-arctic-embed-m": "Snowflake/snowflake-arctic-embed-m",
    "mlc-preset/stablelm": "stabilityai/stablelm-3b-4e1t",
    "mlc-preset/stablelm-2-zephyr-1_6b": "stabilityai/stablelm-2-zephyr-1_6b",
    "mlc-preset/starcoder2": "bigcode/starcoder2-7b",
    "mlc-preset/tinyllama_1b_chat_v0.4": "TinyLlama/TinyLlama-1.1B-Chat-v0.4",
    "mlc-preset/tinyllama_1b_chat_v1.0": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "maxtext/gemma-3-4b-it": "google/gemma-3-4b-it",
    "maxtext/gemma-3-12b-it": "google/gemma-3-12b-it",
    "maxtext/gemma-3-27b-it": "google/gemma-3-27b-it",
    "maxtext/gemma-4-31B": "google/gemma-4-31B",
    "maxtext/gemma-4-26B-A4B": "google/gemma-4-26B-A4B",
    "maxtext/gemma-4-E2B": "google/gemma-4-E2B",
    "maxtext/gemma-4-E4B": "google/gemma-4-E4B",
    "maxtext/Olmo-3-7B": "allenai/Olmo-3-7B-Instruct",
    "maxtext/DeepSeek-V2-Lite": "deepseek-ai/DeepSeek-V2-Lite",
    "maxtext/Qwen3-14B": "Qwen/Qwen3-14B",
    "maxtext/Qwen3-Next-80B-A3B": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "maxtext/Qwen3-Omni-30B-A3B": "Qwen/Qwen3-Omni-30B-A3B-Instruct",
}

# Names that models got after the copy was made, and those of the same shapes and types.
RENAMED = {
    "meta-llama/Llama-3.1-405B": "meta-llama--Meta-Llama-3.1-405B.json",
    "meta-llama/Llama-3.1-405B-Instruct": "meta-llama--Meta-Llama-3.1-405B.json",
}
NO_WINDOW = {"sliding_window": None}
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
USUAL_TOWER: dict[str, Any] = {"vision_config": {}}  # that of the class
# Keys that a partial copy lacks where their class default is not the model's own value, and where
# it is told. Without them a copy would be answered with another model's cache or weights.
SUPPLIED: dict[str, tuple[dict[str, Any], str]] = {
    "mistralai--Mistral-7B-Instruct-v0.2.json": (
        NO_WINDOW, "model card: no sliding-window attention"),
    "mistralai--Mistral-Large-Instruct-2411.json": (NO_WINDOW, "published with a null window"),
    "mistralai--Mistral-Small-Instruct-2409.json": (NO_WINDOW, "published with a null window"),
    "LGAI-EXAONE--EXAONE-4.0-1.2B.json": (
        NO_WINDOW | TIED, "model card: global attention alone; 1.28 B parameters"),
    "CohereLabs--c4ai-command-r7b-12-2024.json": (
        {"hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 256000},
        "published checkpoint: 8.03 B parameters"),
    "tencent--Hunyuan-A13B-Instruct.json": (
        {"num_experts": 64, "moe_topk": 8, "num_shared_expert": 1} | TIED,
        "technical report: one shared and 64 routed experts, 8 drawn; 80 B parameters"),
    "microsoft--Phi-4-mini-instruct.json": (TIED, "model card: shared embedding"),
    "microsoft--bitnet-b1.58-2B-4T.json": (TIED, "published checkpoint: no separate head"),
    "HuggingFaceTB--SmolLM2-1.7B.json": (TIED, "published checkpoint: 1.71 B parameters"),
    "ibm-granite--granite-3.1-2b-instruct.json": (TIED, "published: 2.53 B parameters"),
    "ibm-granite--granite-3.1-8b-instruct.json": (TIED, "published: 8.17 B parameters"),
    "ibm-granite--granite-3.3-8b-instruct.json": (TIED, "published: 8.17 B parameters"),
    "Qwen--Qwen2.5-VL-3B-Instruct.json": (
        {"vision_config": {"hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 2048}}
        | TIED,
        "published checkpoint: 3.75 B parameters"),
    "Qwen--Qwen2.5-VL-72B-Instruct.json": (
        {"vision_config": {
            "hidden_size": 1280, "intermediate_size": 3456, "out_hidden_size": 8192}},
        "published checkpoint: 73.4 B parameters"),
    "XiaomiMiMo--MiMo-VL-7B-SFT.json": (
        {"vision_config": {
            "hidden_size": 1280, "intermediate_size": 3456, "out_hidden_size": 4096}},
        "published checkpoint: 8.31 B parameters"),
    "mistralai--Mistral-Small-3.1-24B-Instruct-2503.json": (
        UNTIED | USUAL_TOWER, "published checkpoint: 24.0 B parameters"),
    "mistralai--Mistral-Small-3.2-24B-Instruct-2506.json": (
        UNTIED | USUAL_TOWER, "published checkpoint: 24.0 B parameters"),
    "mistralai--Ministral-3-14B-Instruct-2512.json": (
        UNTIED | USUAL_TOWER, "published checkpoint: 13.9 B parameters"),
    "lightonai--LightOnOCR-2-1B.json": (USUAL_TOWER, "published checkpoint: 1.0 B parameters"),
    # Which layers have a window is not stated, how many is; a size depends on their number alone.
    "XiaomiMiMo--MiMo-V2.5.json": (
        {"hybrid_layer_pattern": [0] + [1, 1, 1, 1, 0] + [1, 1, 1, 1, 1, 0] * 7},
        "9 full and 39 window layers, placed as in MiMo-V2-Flash"),
    "XiaomiMiMo--MiMo-V2.5-Pro.json": (
        {"hybrid_layer_pattern": [0, 1, 1, 1, 1, 1, 1] * 10},
        "10 full and 60 window layers, evenly placed"),
}  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a tab-separated file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def shortened(value: Any) -> Any:
    """A config with very long lists of module names as counted patterns."""
    if isinstance(value, dict) and len(value) > LONG_LIST:
        pairs = Counter((pattern(key), json.dumps(item)) for key, item in value.items())
        rows = [[name, json.loads(item), count] for (name, item), count in sorted(pairs.items())]
        return {"counted_patterns": rows}
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list) and len(value) > LONG_LIST and isinstance(value[0], str):
        names = Counter(map(pattern, value))
        return {"counted_patterns": [[name, count] for name, count in sorted(names.items())]}
    return value


def pattern(module: str) -> str:
    """A module's name with its layer and expert numbers as stars."""
    return re.sub(r"\.\d+(?=\.|$)", ".*", module)


def quality(file: str, source: str) -> str:
    """How good a copy it is: verbatim, transcribed by another project, or partial."""
    if file.startswith(("mlc-preset--", "maxtext--")):
        return "transcribed"
    if "partial" in source or file in NOT_WHOLE:
        return "partial"
    return "transcribed" if "[transcribed]" in source else "verbatim"


def names_of(models: list[dict[str, str]], aliases: list[dict[str, str]]) -> dict[str, Any]:
    """Every name to the place of its model and what to say of it.

    The first to claim a name keeps it: ids, then their last parts, aliases, and shortened names;
    published copies before transcribed ones.
    """
    names: dict[str, list[Any]] = {}
    order = sorted(range(len(models)), key=lambda place: models[place]["quality"] == "transcribed")
    places = {models[place]["file"]: place for place in order}
    for place in order:
        names.setdefault(fold(models[place]["id"]), [place, ""])
    for place in order:
        names.setdefault(fold(models[place]["id"].rpartition("/")[2]), [place, ""])
    for alias in aliases:
        place = places[alias["file"]]
        warning = alias_warning(alias, models[place]["id"])
        for name in (alias["name"], alias["name"].rpartition("/")[2]):
            names.setdefault(fold(name), [place, warning])
    for place in order:
        short = fold(models[place]["id"].rpartition("/")[2])
        for ending in ENDINGS:
            short = short.removesuffix(f"-{ending}")
        for beginning in BEGINNINGS:
            name = short.removeprefix(beginning)
            names.setdefault(name, [place, f"{name} is answered with {models[place]['id']}."])
    return dict(sorted(names.items()))


def alias_warning(alias: dict[str, str], model: str) -> str:
    """What an alias leaves open: it may have the shapes of a model and not its weights."""
    if not OTHER_WEIGHTS.search(f"{alias['name']} {alias['basis']}"):
        return ""
    return (
        f"{alias['name']} is answered with the shapes of {model} ({alias['basis']}); "
        "its own weights may differ."
    )


def main(folder: str, target: str) -> None:
    """Write every model and the index."""
    source, out = Path(folder), Path(target)
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.json"):
        old.unlink()
    models = []
    for row in table(source / "provenance.tsv"):
        if row["file"].startswith(LEFT_OUT) or not (source / row["file"]).exists():
            continue
        config = json.loads((source / row["file"]).read_text(encoding="utf-8"))
        name = TRANSCRIBED.get(row["model_id"], row["model_id"])
        supplied, told = SUPPLIED.get(row["file"], ({}, ""))
        config |= supplied
        (out / row["file"]).write_text(
            json.dumps(shortened(config), ensure_ascii=False, separators=(",", ":")) + "\n",
            encoding="utf-8",
        )
        models.append(
            {
                "id": name,
                "file": row["file"],
                "model_type": config.get("model_type") or row["model_type"],
                "quality": quality(row["file"], row["source"]),
                "source": f"{row['source']}; {', '.join(supplied)}: {told}"
                if told
                else row["source"],
            }
        )
    written = {model["file"] for model in models}
    aliases = [
        {"name": row["model"], "file": row["file"], "basis": row["basis"]}
        for row in table(source / "aliases.tsv")
        if row["file"] in written and re.fullmatch(r"[\w./:\- ]{3,80}", row["model"])
    ]
    aliases += [
        {"name": name, "file": file, "basis": "renamed by its makers"}
        for name, file in RENAMED.items()
    ]
    names = names_of(models, aliases)
    text = json.dumps({"models": models, "names": names}, ensure_ascii=False, indent=0)
    (out / "index.json").write_text(text + "\n", encoding="utf-8")
    print(f"{len(models)} models, {len(names)} names -> {out}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
