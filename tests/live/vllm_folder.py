"""GGUF files to the folders that vLLM serves: their weights dequantised by transformers.

    python vllm_folder.py FOLDER

Writes FOLDER/NAME beside each FOLDER/NAME.gguf.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar


def convert(gguf: Path, folder: Path) -> None:
    """Write config, weights in bfloat16 and tokenizer; nothing where they are already."""
    if (folder / "model.safetensors").exists() and (folder / "tokenizer.json").exists():
        return
    where = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).to(torch.bfloat16)
    # What came of a quantised file counts as quantised, and is refused until this is taken off.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.config.dtype = torch.bfloat16
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**where).save_pretrained(folder)


if __name__ == "__main__":
    disable_progress_bar()
    for file in sorted(Path(sys.argv[1]).glob("*.gguf")):
        convert(file, file.with_suffix(""))
