"""Which family describes a model type, and which tower a nested encoder's type.

A family is imported when a model of it is read, so that the command starts fast. Each entry is
``module:Class`` below this package (families) or below ``kvplan.readers.towers``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

FAMILIES: dict[str, str] = {
    # t5.py
    "longt5": "t5:LongT5",
    "mt5": "t5:T5",
    "pop2piano": "t5:Pop2Piano",
    "switch_transformers": "t5:SwitchTransformers",
    "t5": "t5:T5",
    "udop": "t5:Udop",
    "umt5": "t5:UMT5",
    # bart.py
    "bart": "bart:Bart",
    "bigbird_pegasus": "bart:BigBirdPegasus",
    "blenderbot": "bart:Blenderbot",
    "blenderbot-small": "bart:BlenderbotSmall",
    "fsmt": "bart:Fsmt",
    "led": "bart:Led",
    "m2m_100": "bart:M2M100",
    "marian": "bart:Marian",
    "mbart": "bart:MBart",
    "mvp": "bart:Mvp",
    "nllb-moe": "bart:NllbMoe",
    "pegasus": "bart:Pegasus",
    "pegasus_x": "bart:PegasusX",
    "plbart": "bart:Bart",
    "prophetnet": "bart:ProphetNet",
    # full.py
    "apertus": "full:Apertus",
    "apertus1p5_text": "full:Apertus15Text",
    "arcee": "full:Arcee",
    "bitnet": "full:BitNet",
    "cohere": "full:Cohere",
    "cwm": "full:Cwm",
    "diffllama": "full:DiffLlama",
    "doge": "full:Doge",
    "emu3_text_model": "full:Emu3Text",
    "ernie4_5": "full:Ernie45",
    "exaone": "full:Llama",
    "gemma": "full:Gemma",
    "glm": "full:Glm",
    "glm4": "full:Glm4",
    "granite": "full:Llama",
    "helium": "full:Helium",
    "hrm_text": "full:HrmText",
    "hunyuan_v1_dense": "full:HunYuanDense",
    "hyperclovax": "full:HyperClovaX",
    "internlm3": "full:Llama",
    "iquestcoder": "full:Llama",
    "jais2": "full:Jais2",
    "llama": "full:Llama",
    "nanochat": "full:NanoChat",
    "nemotron": "full:Nemotron",
    "olmo": "full:Olmo",
    "olmo2": "full:Olmo2",
    "persimmon": "full:Persimmon",
    "phi": "full:Phi",
    "phi3": "full:Phi3",
    "seed_oss": "full:SeedOss",
    "smollm3": "full:SmolLm3",
    "stablelm": "full:StableLm",
    "starcoder2": "full:Starcoder2",
    "qwen3": "full:Qwen3",
    # windows.py
    "gemma2": "windows:Gemma2",
    "gemma3_text": "windows:Gemma3",
    # indexed.py
    "axk2": "indexed:AXK2",
    "deepseek_v32": "indexed:DeepseekV32",
    "glm_moe_dsa": "indexed:GlmMoeDsa",
    "hy_v4": "indexed:HYV4",
    "hy_v4_vl_text": "indexed:HYV4",
    # latent.py
    "axk1": "latent:AXK1",
    "deepseek_v2": "latent:DeepseekV2",
    "deepseek_v3": "latent:DeepseekV3",
    "glm4_moe_lite": "latent:Glm4MoeLite",
    "kimi_k2": "latent:DeepseekV3",
    "longcat_flash": "latent:LongcatFlash",
    "minicpm3": "latent:MiniCPM3",
    "mistral4": "latent:DeepseekV3",
    "sarvam_mla": "latent:DeepseekV3",
    "youtu": "latent:Latent",
    # vision.py
    "gemma3": "vision:Gemma3Vision",
    # vision_llama.py
    "llama4": "vision_llama:Llama4",
    "mllama": "vision_llama:Mllama",
    "mllama_text_model": "vision_llama:MllamaText",
    # vision_llava.py
    "llava": "vision_llava:Llava",
    "llava_next": "vision_llava:LlavaNext",
    "llava_next_video": "vision_llava:LlavaNextVideo",
    "llava_onevision": "vision_llava:LlavaOnevision",
    "paligemma": "vision_llava:PaliGemma",
    "video_llava": "vision_llava:VideoLlava",
    "vipllava": "vision_llava:VipLlava",
    # vision_mistral.py
    "mistral3": "vision_mistral:Mistral3",
    # vision_qwen.py
    "qwen2_5_vl": "vision_qwen:Qwen2VL",
    "qwen2_vl": "vision_qwen:Qwen2VL",
    "qwen3_5": "vision_qwen:Qwen35VL",
    "qwen3_5_moe": "vision_qwen:Qwen35VL",
    "qwen3_vl": "vision_qwen:Qwen3VL",
    "qwen3_vl_moe": "vision_qwen:Qwen3VL",
    "qwen4_exp": "vision_qwen:Qwen35VL",
    # mamba.py
    "falcon_mamba": "mamba:Mamba",
    "jamba": "mamba:Jamba",
    "mamba": "mamba:Mamba",
    # mamba2.py
    "bamba": "mamba2:Bamba",
    "falcon_h1": "mamba2:FalconH1",
    "granitemoehybrid": "mamba2:GraniteMoeHybrid",
    "mamba2": "mamba2:Mamba2",
}

TOWERS: dict[str, str] = {
    # clip.py
    "clip_vision_model": "clip:clip",
    # llama_vision.py
    "llama4_vision_model": "llama_vision:llama4",
    "mllama_vision_model": "llama_vision:mllama",
    # pixtral.py
    "pixtral": "pixtral:pixtral",
    # qwen_vision.py
    "qwen2_5_omni_vision_encoder": "qwen_vision:qwen2_5",
    "qwen2_5_vl_vision": "qwen_vision:qwen2_5",
    "qwen2_vl_vision": "qwen_vision:qwen2",
    "qwen3_5_moe_vision": "qwen_vision:qwen3_5",
    "qwen3_5_vision": "qwen_vision:qwen3_5",
    "qwen3_omni_moe_vision_encoder": "qwen_vision:qwen3",
    "qwen3_vl_moe_vision": "qwen_vision:qwen3",
    "qwen3_vl_vision": "qwen_vision:qwen3",
    "qwen4_exp_vision": "qwen_vision:qwen3_5",
    # vit.py
    "siglip_vision_model": "vit:siglip",
}


@cache
def family_of(model_type: str) -> Any:
    """The family of a type, or None."""
    entry = FAMILIES.get(model_type)
    if entry is None:
        return None
    module, name = entry.split(":")
    return getattr(import_module(f"kvplan.readers.families.{module}"), name)()


@cache
def tower_of(model_type: str) -> Any:
    """The tower function of a nested encoder's type, or None."""
    entry = TOWERS.get(model_type)
    if entry is None:
        return None
    module, name = entry.split(":")
    return getattr(import_module(f"kvplan.readers.towers.{module}"), name)
