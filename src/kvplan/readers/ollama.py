"""A model of Ollama's local store: name → manifest → the GGUF that it points to.

    llama3.1:8b                  <any host>/library/llama3.1/8b
    hf.co/org/name:Q4_K_M        hf.co/org/name/Q4_K_M
    STORE/manifests/HOST/NAMESPACE/MODEL/TAG      JSON: layers with a media type and a digest
    STORE/blobs/sha256-…                          the layers

Names and digests are held against their form before they become paths (Ollama, 2026,
types/model/name.go and manifest/paths.go).
"""

from __future__ import annotations

import os
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadFile, BadValue, SourceUnreachable, UnknownName
from kvplan.core.model import Model
from kvplan.core.weights import Measured, Weights
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.gguf import read_gguf, read_gguf_weights
from kvplan.readers.json_text import parse_object, read_bounded

ANY_HOST, NAMESPACE, TAG = "", "library", "latest"
MEDIA = "application/vnd.ollama.image."
MAX_MANIFEST_BYTES = 1 << 20
MAX_LAYERS = 256
MAX_LISTED = 4096
MAX_PART = 128
LETTERS = set(string.ascii_letters + string.digits + "_-.")


class Name(NamedTuple):
    """The four parts of a model's name; those left away have Ollama's defaults.

    Without a host any folder of the store will do: it has one, that of Ollama's own library.
    """

    host: str
    namespace: str
    model: str
    tag: str

    def __str__(self) -> str:
        named = [self.host, self.namespace, f"{self.model}:{self.tag}"]
        if self.host == ANY_HOST:
            named = named[1:] if self.namespace != NAMESPACE else named[2:]
        return "/".join(named)


class Blob(NamedTuple):
    """One layer of a manifest: what it is, and its file."""

    kind: str
    path: Path
    size: int


def read_ollama(
    name: str,
    *,
    source: str = "",
    options: Options = NO_OPTIONS,
    stores: Sequence[Path] | None = None,
) -> Model:
    """The model that Ollama's local store has under a name.

    Args:
        name: as in ``ollama run``.
        source: where it is from, for the answer.
        options: what is not in a file (an encoder's length).
        stores: folders of ``manifests`` and ``blobs``; default: those that Ollama uses.

    Raises:
        BadValue: no name that Ollama could have.
        UnknownName: no model of that name, with the nearest there are.
        SourceUnreachable: there is no store.
        BadFile: a manifest or a blob that is not what it claims to be.
    """
    wanted = parse_name(name)
    store, manifest = _find(wanted, [Path(s) for s in stores] if stores else default_stores())
    blobs = _blobs(store, manifest)
    models = [blob for blob in blobs if blob.kind == "model"]
    if not models:
        raise BadFile(f"The manifest {manifest} has no GGUF layer.")
    found = read_gguf(
        models[0].path, name=str(wanted), source=source or f"ollama: {manifest}", options=options
    )
    projectors = [blob for blob in blobs if blob.kind == "projector"]
    return replace(found, weights=_with_projectors(found.weights, projectors))


def parse_name(text: str) -> Name:
    """A name's parts.

    Raises:
        BadValue: empty, too long, or a part with other characters than letters, digits, ``_-.``.
    """
    path, _, tag = text.strip().rpartition(":")
    if not path or "/" in tag:
        path, tag = text.strip(), TAG
    parts = path.split("/")
    if len(parts) > 3:
        raise _no_name(text)
    host, namespace, model = [ANY_HOST, NAMESPACE][: 3 - len(parts)] + parts
    found = Name(host, namespace, model, tag)
    for place, part in enumerate(found):
        letters = LETTERS | {":"} if place == 0 else LETTERS
        if place == 0 and part == ANY_HOST:
            continue
        if not 0 < len(part) <= MAX_PART or part.startswith((".", "-")) or set(part) - letters:
            raise _no_name(text)
    return found


def _no_name(text: str) -> BadValue:
    return BadValue(
        f"{text[:80]!r} is no name of a model of Ollama.",
        "Write it like llama3.1:8b or hf.co/org/name:Q4_K_M.",
    )


def default_stores() -> list[Path]:
    """$OLLAMA_MODELS, the user's own, the service's."""
    given = os.environ.get("OLLAMA_MODELS", "")
    return [
        *([Path(given)] if given else []),
        Path(os.path.expanduser("~/.ollama/models")),
        Path("/usr/share/ollama/.ollama/models"),
    ]


def _find(wanted: Name, stores: list[Path]) -> tuple[Path, Path]:
    """The store and the manifest of a name."""
    there = [store for store in stores if (store / "manifests").is_dir()]
    if not there:
        looked = ", ".join(map(str, stores))
        raise SourceUnreachable(
            f"There is no store of Ollama's models: looked in {looked}.", "Set OLLAMA_MODELS."
        )
    for store in there:
        for host in [wanted.host] if wanted.host else _hosts(store):
            manifest = store / "manifests" / host / Path(*wanted[1:])
            if manifest.is_file():
                return store, manifest
    names: dict[str, tuple[Path, Name]] = {}
    for store in there:
        for name in _listed(store):
            for spoken in (name, name._replace(host=ANY_HOST)):
                names.setdefault(_key(spoken), (store, name))
    same = names.get(_key(wanted))
    if same is not None:
        return same[0], same[0] / "manifests" / Path(*same[1])
    known = {str(name._replace(host=ANY_HOST)): name for _, name in names.values()}
    near = get_close_matches(str(wanted), list(known), 3, 0.5)
    hint = "" if near else f"The store has {len(known):,} models."
    raise UnknownName("Ollama model", str(wanted), near, hint)


def _key(name: Name) -> str:
    """A name in any case."""
    return "/".join(name).casefold()


def _hosts(store: Path) -> list[str]:
    """The hosts that a store has models of."""
    return sorted(path.name for path in islice((store / "manifests").iterdir(), MAX_LISTED))


def _listed(store: Path) -> Iterator[Name]:
    """The models of a store."""
    root = store / "manifests"
    for path in islice(root.glob("*/*/*/*"), MAX_LISTED):
        yield Name(*path.relative_to(root).parts)


def _blobs(store: Path, manifest: Path) -> list[Blob]:
    """The layers of a manifest."""
    raw = parse_object(read_bounded(manifest, MAX_MANIFEST_BYTES), str(manifest))
    layers = raw.get("layers")
    if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
        raise BadFile(f"The manifest {manifest} has no list of at most {MAX_LAYERS} layers.")
    return [_blob(store, manifest, layer) for layer in layers]


def _blob(store: Path, manifest: Path, layer: Any) -> Blob:
    """One layer, its digest in the form that a file name has."""
    if not isinstance(layer, Mapping):
        raise BadFile(f"The manifest {manifest} has a layer that is no object.")
    media, digest, size = layer.get("mediaType"), layer.get("digest"), layer.get("size")
    if not isinstance(media, str) or size.__class__ is not int:
        raise BadFile(f"The manifest {manifest} has a layer without a media type or size.")
    code = digest[7:] if isinstance(digest, str) and digest[:7] in ("sha256:", "sha256-") else ""
    if len(code) != 64 or set(code) - set(string.hexdigits):
        raise BadFile(f"The manifest {manifest} has the digest {str(digest)[:80]!r}, no SHA-256.")
    blob = Blob(media.removeprefix(MEDIA), store / "blobs" / f"sha256-{code}", size)
    if blob.kind in ("model", "projector"):
        _check_size(manifest, blob)
    return blob


def _check_size(manifest: Path, blob: Blob) -> None:
    """A blob is there, with the size that its manifest says."""
    try:
        there = blob.path.stat().st_size
    except OSError:
        raise SourceUnreachable(f"{manifest} names {blob.path}, which is not there.") from None
    if there != blob.size:
        raise BadFile(f"{blob.path} has {there:,} bytes where its manifest says {blob.size:,}.")


def _with_projectors(weights: Weights | None, projectors: list[Blob]) -> Weights | None:
    """The weights with those of a vision projector's file beside the model's."""
    if weights is None:
        return None
    for blob in projectors:
        extra = read_gguf_weights(blob.path)
        tensors = tuple(tensor._replace(role=w.TOWER) for tensor in extra.tensors)
        weights = replace(
            weights,
            tensors=weights.tensors + tensors,
            parameters=weights.parameters + extra.parameters,
            active_parameters=weights.active_parameters + extra.active_parameters,
            storage=Measured(
                weights.num_bytes + extra.num_bytes,
                f"{weights.source}; projector: {extra.num_bytes:,} bytes",
            ),
        )
    return weights
