"""What an engine runs on, and which formats its kernels take there.

vLLM's documents (0.32.0): docs/getting_started/installation/gpu.cuda.inc.md asks for compute
capability 7.5; docs/features/quantization/README.md has the table of formats by generation, with
the note that Marlin takes MXFP4 on Ampere and newer only, and llm_compressor/fp8.md says that FP8
weights run from 7.5 on (multiplied in 8 bits from 8.9). That table has no line for MXFP4 on AMD,
which is taken to run. SGLang and TensorRT-LLM are taken to serve what vLLM serves: an assumption.
llama.cpp's CUDA backend is built for 5.0 and newer with CUDA 12, for 7.5 and newer with CUDA 13
(ggml/src/ggml-cuda/CMakeLists.txt).
"""

from __future__ import annotations

import re
from typing import Final

from kvplan.core.device import Device
from kvplan.core.model import Model
from kvplan.core.quantisation import Quantised
from kvplan.engines.names import LAYERED

TURING: Final = 7.5
AMPERE: Final = 8.0
# CUDA compute capability by a device's name, where it is below Ampere's.
OLDER: Final = (
    (re.compile(r"p100|p40"), 6.0),
    (re.compile(r"v100"), 7.0),
    (re.compile(r"\bt4\b|rtx-20"), 7.5),
)
# The largest host that is common of cards in slots or on a baseboard; a smaller host is --max-gpus.
HOST_CARDS: Final = 8
# Cards that one host has, where it is no box of eight: superchips and desktops one, NVL2 two, a
# compute tray of NVL72 four (MLPerf's systems of GB200 and GB300, accelerators_per_node).
FEWER: Final = {"gh200": 1, "gh200-144gb": 2, "gb10": 1, "gb200": 4, "gb300": 4}
LINKED: Final = {"gb200": 72, "gb300": 72}  # trays of one rack, by the same link
SERVED_BY_VLLM: Final = ("NVIDIA", "AMD", "Intel")
PLUGINS: Final = re.compile(r"gaudi|max-1550")  # served by a plugin that is not modelled
CPUS: Final = ("CPU",)
DATACENTRE: Final = ("vllm", "sglang", "tensorrt-llm")
LLAMACPP: Final = ("NVIDIA", "AMD", "Apple", "Intel")
FALLBACK: Final = "llama.cpp"


def capability(device: Device) -> float:
    """A CUDA device's compute capability, 8.0 for all that have it or more."""
    return next((level for name, level in OLDER if name.search(device.kind)), AMPERE)


def host_cards(device: Device) -> int:
    """Cards that one host has."""
    if device.unified_memory or device.sliced:
        return 1
    return FEWER.get(device.kind, HOST_CARDS)


def beyond_a_host(device: Device, cards: int) -> str | None:
    """What is said of so many cards; None where one link joins them all."""
    most = LINKED.get(device.kind, host_cards(device))
    if cards <= most:
        return None
    host = "one" if most == 1 else f"{most:,}"
    return (
        f"A host has {host} of {device.title} as a rule: what {cards:,} exchange goes over a "
        "network, which is not modelled (its speed is taken as the cards' own link)."
    )


def refusal(engine: str, device: Device) -> str | None:
    """Why an engine does not run on a device; None where it does."""
    if engine in LAYERED:
        return None if device.vendor in LLAMACPP else f"{engine} has no backend for {device.title}"
    if engine not in DATACENTRE:
        return None
    vendors = ("NVIDIA",) if engine == "tensorrt-llm" else SERVED_BY_VLLM
    if device.vendor not in vendors or PLUGINS.search(device.kind):
        return f"{engine} on {device.title} is not modelled"
    return too_old(engine, device)


def too_old(engine: str, device: Device) -> str | None:
    """Why an engine has no kernels for an NVIDIA card; None where it has."""
    if engine not in DATACENTRE or device.vendor != "NVIDIA" or capability(device) >= TURING:
        return None
    return (
        f"{engine} needs compute capability 7.5, and {device.title} has "
        f"{capability(device):.1f}; llama.cpp runs there"
    )


def weights_format(model: Model) -> str:
    """A word for how a model's matrices are stored, as ``fp8`` or ``16 bits``."""
    storage = model.weights.storage if model.weights else None
    if not isinstance(storage, Quantised):
        return "16 bits"
    names = {scheme.name for shares in storage.shares.values() for scheme, _ in shares}
    said = " ".join((storage.method, *sorted(names))).lower()
    for word in (
        "nvfp4",
        "mxfp4",
        "int4",
        "awq",
        "gptq",
        "q4_k_m",
        "q8_0",
        "nf4",
        "fp8",
        "int8",
    ):
        if word in said:
            return word
    # ModelOpt's schemes are named by their bits alone.
    return "fp8" if "8 bits" in said else "nvfp4" if "4 bits" in said else storage.method


def weights_refusal(device: Device, stored: str) -> str | None:
    """Why vLLM, SGLang or TensorRT-LLM do not take weights stored so on a device."""
    if stored == "16 bits":
        return None
    native = bool(device.dense_flops.get("fp8"))
    if device.vendor == "NVIDIA":
        # INT8 kernels end with Hopper (llm_compressor/int8.md).
        if stored == "int8" and bool(device.dense_flops.get("fp4")):
            return f"there are no kernels for int8 weights on {device.title}"
        served = capability(device) >= (AMPERE if stored == "mxfp4" else TURING)
    elif device.vendor == "AMD":
        served = stored in ("mxfp4",) or (stored == "fp8" and native)
    else:
        served = stored in ("int4", "awq", "gptq")
    return None if served else f"there are no kernels for {stored} weights on {device.title}"


def takes_fp8_cache(engine: str, device: Device) -> bool:
    """Whether an fp8 cache is served: with units for fp8, NVIDIA's or AMD's."""
    known = engine in DATACENTRE and device.vendor in ("NVIDIA", "AMD")
    return known and bool(device.dense_flops.get("fp8"))


def needs_half(device: Device) -> bool:
    """Whether 16-bit weights have to be fp16: no bf16 below Ampere (vLLM 0.32.0,
    platforms/cuda.py, check_if_supports_dtype).
    """
    return device.vendor == "NVIDIA" and capability(device) < AMPERE
