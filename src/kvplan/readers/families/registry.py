"""Which family describes a model type, and which tower a nested encoder's type.

A family is imported when a model of it is read, so that the command starts fast. Each entry is
``module:Class`` below this package (families) or below ``kvplan.readers.towers``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

FAMILIES: dict[str, str] = {
    # bert.py
    "bert": "bert:Bert",
    "bert-generation": "bert:BertGeneration",
    "big_bird": "bert:BigBird",
    "camembert": "bert:Bert",
    "data2vec-text": "bert:Bert",
    "electra": "bert:Electra",
    "ernie": "bert:Ernie",
    "megatron-bert": "bert:MegatronBert",
    "rembert": "bert:RemBert",
    "roberta": "bert:Bert",
    "roberta-prelayernorm": "bert:PreNorm",
    "roc_bert": "bert:RocBert",
    "roformer": "bert:RoFormer",
    "xlm-roberta": "bert:Bert",
    "xlm-roberta-xl": "bert:MegatronBert",
    "xmod": "bert:Xmod",
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
    # early.py
    "cpmant": "early:CpmAnt",
    "reformer": "early:Reformer",
    "xlnet": "early:XlNet",
    # falcon.py
    "RefinedWeb": "falcon:RefinedWeb",
    "RefinedWebModel": "falcon:RefinedWebModel",
    "falcon": "falcon:Falcon",
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
    # gpt.py
    "biogpt": "gpt:BioGpt",
    "bloom": "gpt:Bloom",
    "codegen": "gpt:GptJ",
    "ctrl": "gpt:Ctrl",
    "gpt-sw3": "gpt:Gpt2",
    "gpt2": "gpt:Gpt2",
    "gpt_bigcode": "gpt:GptBigCode",
    "gpt_neo": "gpt:GptNeo",
    "gpt_neox": "gpt:GptNeoX",
    "gpt_neox_japanese": "gpt:GptNeoXJapanese",
    "gptj": "gpt:GptJ",
    "mpt": "gpt:Mpt",
    "openai-gpt": "gpt:OpenAiGpt",
    "opt": "gpt:Opt",
    "xglm": "gpt:Xglm",
    "xlm": "gpt:Xlm",
    # windows.py
    "cohere2": "windows:Cohere2",
    "cohere_compass_text": "windows:CohereCompassText",
    "exaone4": "windows:Exaone4",
    "granite_swa": "windows:GraniteSwa",
    "ministral": "windows:Mistral",
    "ministral3": "windows:Mistral",
    "mistral": "windows:Mistral",
    "modernbert-decoder": "windows:ModernBertDecoder",
    "muse_glimmer_text": "windows:MuseGlimmerText",
    "olmo3": "windows:Olmo3",
    # compressed.py
    "deepseek_ref": "compressed:DeepseekReference",
    "deepseek_v4": "compressed:DeepseekV4",
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
    # latent_sharing.py
    "mistral_large4_text": "latent_sharing:MistralLarge4",
    # latent_windows.py
    "dots3_note_text": "latent_windows:Dots3Note",
    # vision.py
    "aya_vision": "vision:AyaVision",
    "cohere2_vision": "vision:Cohere2Vision",
    "cosmos3_edge": "vision:Cosmos3Edge",
    "cosmos3_omni": "vision:Cosmos3Omni",
    "deepseek_vl": "vision:DeepseekVL",
    "deepseek_vl_hybrid": "vision:DeepseekVLHybrid",
    "exaone4_5": "vision:Exaone45",
    "fast_vlm": "vision:FastVlm",
    "gemma3": "vision:Gemma3Vision",
    "got_ocr2": "vision:GotOcr2",
    "hyperclovax_vision_v2": "vision:HyperClovaXVision",
    "internvl": "vision:InternVL",
    "kimi_k25": "vision:KimiK25",
    "lfm2_vl": "vision:Lfm2VL",
    "lighton_ocr": "vision:LightOnOcr",
    "shieldgemma2": "vision:ShieldGemma2",
    # vision_blip.py
    "blip": "vision_blip:Blip",
    "blip-2": "vision_blip:Blip2",
    "blip_text_model": "vision_blip:BlipText",
    "git": "vision_blip:Git",
    "instructblip": "vision_blip:InstructBlip",
    "instructblipvideo": "vision_blip:InstructBlip",
    # vision_idefics.py
    "idefics": "vision_idefics:Idefics",
    "idefics2": "vision_idefics:Idefics2",
    "idefics3": "vision_idefics:Idefics3",
    "smolvlm": "vision_idefics:Idefics3",
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
    # gemma.py
    "gemma2": "gemma:Gemma2",
    "gemma3_text": "gemma:Gemma3",
    "gemma3n_text": "gemma:Gemma3n",
    "gemma4_assistant": "gemma:Gemma4Assistant",
    "gemma4_text": "gemma:Gemma4",
    "gemma4_unified_assistant": "gemma:Gemma4UnifiedAssistant",
    "gemma4_unified_text": "gemma:Gemma4",
    "vaultgemma": "gemma:VaultGemma",
    # qwen.py
    "qwen2": "qwen:Qwen2",
    "qwen2_5_omni_text": "qwen:Qwen2",
    "qwen2_5_vl_text": "qwen:Qwen2",
    "qwen2_moe": "qwen:Qwen2Moe",
    "qwen2_vl_text": "qwen:Qwen2",
    "qwen3": "qwen:Qwen3",
    "qwen3_moe": "qwen:Qwen3Moe",
    "qwen3_omni_moe_text": "qwen:Qwen3Moe",
    "qwen3_vl_moe_text": "qwen:Qwen3VlMoeText",
    "qwen3_vl_text": "qwen:Qwen3VlText",
    # mixtures.py
    "aria_text": "mixtures:AriaText",
    "dbrx": "mixtures:Dbrx",
    "ernie4_5_moe": "mixtures:Ernie45Moe",
    "ernie4_5_vl_moe_text": "mixtures:Ernie45VlMoeText",
    "flex_olmo": "mixtures:Olmoe",
    "glm4_moe": "mixtures:Glm4Moe",
    "glm4v_moe_text": "mixtures:Glm4vMoeText",
    "hunyuan_v1_moe": "mixtures:HunYuanMoe",
    "hy_v3": "mixtures:HyV3",
    "jetmoe": "mixtures:JetMoe",
    "minimax_m2": "mixtures:MiniMaxM2",
    "mixtral": "mixtures:Mixtral",
    "olmoe": "mixtures:Olmoe",
    "phimoe": "mixtures:Phimoe",
    "sarvam_moe": "mixtures:Glm4Moe",
    "solar_open": "mixtures:SolarOpen",
    # rwkv.py
    "rwkv": "rwkv:Rwkv",
    "rwkv5": "rwkv:Rwkv5",
    "rwkv6": "rwkv:Rwkv6",
    # rglru.py
    "recurrent_gemma": "rglru:RecurrentGemma",
    # zamba.py
    "zamba": "zamba:Zamba",
    "zamba2": "zamba:Zamba2",
    # nemotron_h.py
    "nemotron_h": "nemotron_h:NemotronH",
    # xlstm.py
    "xlstm": "xlstm:XLstm",
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
    # blip.py
    "blip_2_vision_model": "blip:blip",
    "blip_vision_model": "blip:blip",
    "instructblip_vision_model": "blip:blip",
    "instructblipvideo_vision_model": "blip:blip",
    # internvl.py
    "internvl_vision": "internvl:internvl",
    # kimi.py
    "kimi_k25_vision": "kimi:moonvit",
    # sam.py
    "got_ocr2_vision": "sam:sam",
    "sam_vision_model": "sam:sam",
    # vit.py
    "cosmos3_edge_vision": "vit:flat_siglip",
    "idefics2_vision": "vit:plain",
    "idefics3_vision": "vit:plain",
    "siglip2_vision_model": "vit:siglip2",
    "siglip_vision_model": "vit:siglip",
    "smolvlm_vision": "vit:plain",
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
