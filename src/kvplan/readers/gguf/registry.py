"""How each architecture of llama.cpp is read.

Names are those of src/llama-arch.cpp (llama.cpp, May 2026, and later ones where their rules are
public). An architecture that is here under no other class keeps keys and values of every token.
"""

from __future__ import annotations

from kvplan.readers.gguf import attention as a
from kvplan.readers.gguf import latent, states
from kvplan.readers.gguf.encoder_decoder import T5

_FULL = (
    "llama", "deci", "falcon", "baichuan", "grok", "gpt2", "gptj", "gptneox", "mpt", "starcoder",
    "refact", "bloom", "stablelm", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe",
    "qwen3vl", "qwen3vlmoe", "phi2", "phimoe", "plamo", "codeshell", "orion", "internlm2",
    "minicpm", "gemma", "starcoder2", "xverse", "command-r", "dbrx", "olmo", "olmoe", "openelm",
    "arctic", "deepseek", "deepseek2-ocr", "chatglm", "glm4", "glm4moe", "bitnet", "bitnet-25",
    "bitnet-b1.58", "jais", "jais2", "nemotron", "exaone", "granite", "granitemoe", "chameleon",
    "plm", "bailingmoe", "bailingmoe2", "dots1", "arcee", "ernie4_5", "ernie4_5-moe", "paddleocr",
    "hunyuan-moe", "hunyuan-dense", "hunyuan_vl", "smollm3", "seed_oss", "grovemoe", "apertus",
    "minimax-m2", "cogvlm", "pangu-embedded", "mistral3", "llama-embed", "maincoder", "qwen25vl",
)  # fmt: skip

_NO_CACHE = (
    "bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2",
    "jina-bert-v3", "eurobert", "gemma-embedding", "t5encoder", "wavtokenizer-dec", "dream",
    "llada", "llada-moe", "rnd1",
)  # fmt: skip

ARCHITECTURES: dict[str, type[a.Architecture]] = {
    **dict.fromkeys(_FULL, a.Architecture),
    **dict.fromkeys(_NO_CACHE, a.NoAttentionCache),
    # windows
    "afmoe": a.EveryFourth,
    "cohere2": a.EveryFourth,
    "cohere2moe": a.PeriodFromFirst,
    "exaone-moe": a.EveryFourth,
    "exaone4": a.EveryFourth,
    "gemma2": a.Gemma2,
    "gemma3": a.Gemma3,
    "gemma3n": a.Gemma3n,
    "gemma4": a.Sharing,
    "gpt-oss": a.EverySecond,
    "gptoss": a.EverySecond,  # as Ollama writes it
    "laguna": a.EveryFourthFromFirst,
    "llama4": a.Chunked,
    "mimo2": a.MimoV2,
    "olmo2": a.EveryFourth,
    "olmo3": a.EveryFourth,  # as Ollama writes it
    "phi3": a.WindowSwitchedOff,
    "plamo3": a.EveryEighth,
    "smallthinker": a.EveryFourthFromFirst,
    "step35": a.Windowed,
    # latent rows
    "deepseek2": latent.Latent,
    "deepseek32": latent.Indexed,
    "deepseek4": latent.Compressed,
    "glm-dsa": latent.GlmDsa,
    "minicpm3": latent.Latent,
    "mistral4": latent.Latent,
    # states
    "arwkv7": states.Rwkv,
    "bailingmoe3": states.KimiLinear,
    "falcon-h1": states.FalconH1,
    "granitehybrid": states.MambaHybrid,
    "jamba": states.Jamba,
    "kimi-linear": states.KimiLinear,
    "lfm2": states.Lfm2,
    "lfm2moe": states.Lfm2,
    "mamba": states.Mamba,
    "mamba2": states.Mamba2,
    "nemotron_h": states.NemotronH,
    "nemotron_h_moe": states.NemotronH,
    "plamo2": states.MambaHybrid,
    "qwen35": states.GatedDelta,
    "qwen35moe": states.GatedDelta,
    "qwen3next": states.GatedDelta,
    "rwkv6": states.Rwkv,
    "rwkv6qwen2": states.Rwkv,
    "rwkv7": states.Rwkv,
    # encoder-decoders
    "t5": T5,
}


def architecture_of(name: str) -> type[a.Architecture]:
    """The class that reads an architecture."""
    return ARCHITECTURES.get(name, a.Unknown)
