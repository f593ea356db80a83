"""GGUF files: a bounded reader of their headers, and the model that they describe.

header    metadata and tensor infos          types     bytes of every ggml type
split     models in several files            metadata  checked access to the keys
attention, latent, states, encoder_decoder   what each architecture keeps, as llama.cpp has it
registry  which class reads which name       weights   roles and exact bytes
"""

from __future__ import annotations

from pathlib import Path

from kvplan.core.errors import BadFile
from kvplan.core.model import Facts, Model
from kvplan.core.stack import Stack
from kvplan.core.weights import Weights
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.gguf.header import Header, Tensor, read_header
from kvplan.readers.gguf.metadata import Metadata
from kvplan.readers.gguf.registry import architecture_of
from kvplan.readers.gguf.split import Files, Siblings, beside, read_files
from kvplan.readers.gguf.weights import weigh
from kvplan.readers.ranges import LocalFile, RangeReader

__all__ = ["Header", "Tensor", "read_gguf", "read_gguf_weights", "read_header"]

NOT_MODELS = {
    "adapter": "a LoRA adapter", "mmproj": "a vision or audio projector",
    "imatrix": "an importance matrix", "vocab": "a vocabulary",
}  # fmt: skip


def read_gguf(
    file: str | Path | RangeReader,
    *,
    name: str = "",
    source: str = "",
    options: Options = NO_OPTIONS,
    siblings: Siblings | None = None,
) -> Model:
    """The model of a GGUF file, or of all files of a split one.

    Args:
        file: a path, or a reader of one behind range requests.
        name: what to call it; default: its ``general.name``, else its file name.
        source: where it is from, for the answer; default: the path.
        options: what is not in a file (an encoder's length).
        siblings: the other files of a split model by name; default: those in the same folder.

    Raises:
        BadFile: not GGUF, damaged, no model, or a key absent, wrongly typed or out of range.
        UnknownModelType: an architecture whose cache cannot be told from its keys.
        SourceUnreachable: a file that cannot be read.
    """
    files, origin = _open(file, siblings)
    header = files.header
    _check_kind(header)
    m = Metadata(header)
    found = architecture_of(m.architecture)(m, options)
    blocks = Stack.of(found.blocks())
    weights = _weights(m, files)
    return Model(
        name=(name or m.text("general.name") or header.file)[:200],
        model_type=m.architecture,
        architecture=m.architecture,
        source=source or origin,
        blocks=blocks,
        weights=weights,
        max_context_tokens=m.whole("context_length") if m.has("context_length") else None,
        vocab_size=_vocabulary(m, files),
        hidden_size=m.whole("embedding_length"),
        encoder_tokens=found.encoder_tokens,
        confidence=found.confidence,
        warnings=tuple(found.warnings),
        facts=lambda: _facts(m, files),
    )


def read_gguf_weights(file: str | Path | RangeReader) -> Weights:
    """What the tensors of a GGUF file weigh, whatever it holds (a projector, an adapter)."""
    return weigh(_open(file, None)[0].tensors)


def _open(file: str | Path | RangeReader, siblings: Siblings | None) -> tuple[Files, str]:
    """The files' headers, and where they are."""
    if isinstance(file, str | Path):
        path = Path(file)
        return read_files(LocalFile(path), siblings or beside(path)), str(path)
    return read_files(file, siblings), file.name


def _check_kind(header: Header) -> None:
    """Refuse what is no language model."""
    kind = header.metadata.get("general.type")
    if header.metadata.get("general.architecture") == "clip":
        kind = "mmproj"
    if isinstance(kind, str) and kind in NOT_MODELS:
        raise BadFile(f"{header.file} holds {NOT_MODELS[kind]}, no language model.")


def _weights(m: Metadata, files: Files) -> Weights:
    """All tensors, with the experts that a token passes through."""
    return weigh(
        files.tensors,
        m.whole("expert_count", 0, least=0),
        m.whole("expert_used_count", 0, least=0),
    )


def _vocabulary(m: Metadata, files: Files) -> int | None:
    """The key, else the tokenizer's length, else the rows of the embedding."""
    if m.has("vocab_size"):
        return m.whole("vocab_size")
    rows = (t.shape[1] for t in files.tensors if t.name == "token_embd.weight" and len(t.shape) > 1)
    return m.length("tokenizer.ggml.tokens") or next(rows, None)


def _facts(m: Metadata, files: Files) -> Facts:
    """The keys that were read, and the bytes of the embedding, which llama.cpp keeps apart."""
    sizes = {
        f"{t.name} bytes": (t.num_bytes, files.header.file)
        for t in files.tensors
        if t.name in ("token_embd.weight", "per_layer_token_embd.weight")
    }
    return {**m.facts(), **sizes}
