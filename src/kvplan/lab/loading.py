"""A model with its tokenizer: by name, folder or GGUF file; SmolLM2-135M where none is named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvplan.core.errors import BadValue, SourceUnreachable
from kvplan.core.model import Model
from kvplan.lab.extras import load_torch
from kvplan.measuring.embedded.weights import embedded_weights
from kvplan.readers.open_model import open_model

DEFAULT = "smollm2-135m"
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model that runs, and the same as kvplan reads its config; ``source`` loads it again."""

    name: str
    source: str | None
    model: Any
    tokenizer: Any
    described: Model
    dtype: str
    device: str
    threads: int

    @property
    def config(self) -> Any:
        """The config as transformers has it."""
        return self.model.config

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, without any that the tokenizer adds."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, tokens: Any) -> str:
        """The text of tokens."""
        return str(self.tokenizer.decode(tokens))


def load(
    name: str | None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    offline: bool = False,
) -> Loaded:
    """Weights into memory: in float32 on a CPU, in bfloat16 on a GPU, unless told otherwise.

    Raises:
        BadValue: no torch, an unknown type or device, or a model that transformers does not load.
        SourceUnreachable: weights that are not there.
    """
    torch = load_torch(threads)
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|mps|(cuda|xpu)(:\d{1,3})?", where):
        raise BadValue(f"{where[:40]!r} is no device.", "Known: cpu, cuda, cuda:1, xpu, mps.")
    kept = dtype or ("f32" if where == "cpu" else "bf16")
    if kept not in DTYPES:
        raise BadValue(f"{kept[:40]!r} is no type to compute in.", f"Known: {', '.join(DTYPES)}.")
    place, options = _source(name, offline)
    tokenizer, model = _pretrained(place, options | {"local_files_only": offline}, kept)
    config = model.config.to_dict()
    config.pop("quantization_config", None)  # of the file: what runs is whole
    return Loaded(
        name=Path(name).name if name and Path(name).exists() else name or DEFAULT,
        source=name,
        model=_moved(model, where),
        tokenizer=tokenizer,
        described=open_model(config, offline=True),
        dtype=kept,
        device=where,
        threads=torch.get_num_threads(),
    )


def _source(name: str | None, offline: bool) -> tuple[str, dict[str, Any]]:
    """What transformers is asked for: a name or folder, and the file in it."""
    if name is None or name.lower() == DEFAULT:
        try:
            path = embedded_weights(None, offline=offline)
        except SourceUnreachable as error:
            hint = "Pass a model of your own with --model NAME, FOLDER or FILE.gguf."
            raise SourceUnreachable(error.message, hint) from None
        return str(path.parent), {"gguf_file": path.name}
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise SourceUnreachable(f"--model {str(path)[:200]} is no file.")
        return str(path.absolute().parent), {"gguf_file": path.name}
    if path.exists() and not (path / "config.json").is_file():
        said = f"{str(path)[:200]} is no folder with a config.json"
        raise BadValue(f"{said}, nor a GGUF file.", "As transformers' save_pretrained writes.")
    if path.exists():
        return str(path), {}
    return name, {}


def _pretrained(place: str, options: dict[str, Any], dtype: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    shown = str(Path(place) / options["gguf_file"]) if "gguf_file" in options else place
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **options)
        model = AutoModelForCausalLM.from_pretrained(
            place, dtype=getattr(torch, DTYPES[dtype]), **options
        )
    except OSError as error:
        raise SourceUnreachable(
            f"transformers finds no model {shown[:200]!r}: {_first_line(error)}"
        ) from None
    except (ValueError, ImportError, KeyError, RuntimeError) as error:
        raise BadValue(
            f"transformers does not load {shown[:200]!r}: {_first_line(error)}"
        ) from None
    return tokenizer, model.eval()


def _moved(model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadValue(f"--device {device[:40]!r} cannot be used: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
