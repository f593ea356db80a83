"""How the embedded llama.cpp is started, and the same as llama-server's flags."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

# Two compute threads on a machine that others use spin on each other: 35 times slower was seen.
SMALL_MACHINE: Final = 4  # cores; up to here one thread


def default_threads() -> int:
    """One on a small machine, else half of the cores."""
    cores = os.cpu_count() or 1
    return 1 if cores <= SMALL_MACHINE else cores // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A start of llama.cpp on the CPU.

    ``context_tokens`` are those of all slots together; ``host_cache_mib`` is host memory that keeps
    prompts which a slot lost, 0 for none: then what is reused is what the slots hold.
    """

    model: str
    threads: int = 1
    context_tokens: int = 8192
    slots: int = 1
    unified: bool = False
    cache_type: str = "f16"
    cache_type_v: str = ""  # "": as the keys
    flash_attention: bool = True
    host_cache_mib: int = 0
    slot_folder: str = ""  # where a slot's state may be saved to and restored from; "": nowhere

    @property
    def name(self) -> str:
        """What the server calls the model."""
        return Path(self.model).stem

    @property
    def flags(self) -> dict[str, Any]:
        """llama-server's flags of the same start, as ``fit`` takes them."""
        return {
            "ctx_size": self.context_tokens,
            "parallel": self.slots,
            "kv_unified" if self.unified else "no_kv_unified": True,
            "cache_type_k": self.cache_type,
            "cache_type_v": self.cache_type_v or self.cache_type,
            "flash_attn": "on" if self.flash_attention else "off",
            "threads": self.threads,
            "n_gpu_layers": 0,
        }
