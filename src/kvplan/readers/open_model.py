"""A model from anywhere: a parsed config, a file or folder, standard input, a name.

dict               a parsed config.json
Memory             the beginning of a .gguf, its header
-                  standard input: a config.json
a path             a folder, config.json, .gguf, .safetensors or its index
a catalogue name   any case and punctuation
name:tag           a model in Ollama's local store
org/name           the hub: its config, or a GGUF of it (org/name:Q4_K_M, org/name/file.gguf)
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable, UnknownName
from kvplan.core.model import Model
from kvplan.core.weight_formats import format_of_name
from kvplan.core.weights import EXPERT_OUT, Unquantised
from kvplan.readers import catalogue, defaults, reach
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.hf_config import read_config
from kvplan.readers.hub_name import HubName, parse_hub_name
from kvplan.readers.json_text import MAX_BYTES, parse_object, read_bounded
from kvplan.readers.ranges import Memory

if TYPE_CHECKING:
    from kvplan.readers.gguf.split import Siblings
    from kvplan.readers.ranges import RangeReader

ModelSource = str | Path | Mapping[str, Any] | Memory


def open_model(
    source: ModelSource,
    *,
    overrides: Mapping[str, Any] | None = None,
    options: Options = NO_OPTIONS,
    assume: str = "",
    offline: bool = False,
) -> Model:
    """The model of a source, whatever it is.

    Args:
        source: a parsed config, a path, ``-`` for standard input, or a name.
        overrides: config keys that replace the source's (``--set``).
        options: what is not in a file (an encoder's length).
        assume: ``full`` answers a config of an unknown type as full attention.
        offline: never ask the hub.

    Raises:
        BadValue: no source at all, keys that are none, or a way to assume that is not known.
        UnknownName: no file, catalogue model, hub model or Ollama model has the name.
        BadFile: the source is not what it claims to be.
        SourceUnreachable: a file or the hub cannot be read.
    """
    _check(source, overrides, assume)
    reading = _Reading(dict(overrides or {}), options, assume, offline)
    if isinstance(source, Mapping):
        return reading.config(source, "", "config")
    if isinstance(source, Memory):
        return reading.gguf(source, name=source.name, source=source.name)
    if not reach.is_open():
        return reading.published(source)
    if source == "-":
        return reading.standard_input()
    text = str(source)
    path = _expanded(text)
    if isinstance(source, Path) or _is_path(text, path):
        try:
            return reading.path(path)
        except OSError as error:
            said = f"{path} cannot be read: {error.strerror or error}."
            raise SourceUnreachable(said) from None
    return reading.name(text)


def _check(source: object, overrides: object, assume: object) -> None:
    """What a program may pass and the command cannot."""
    if not isinstance(source, str | Path | Mapping | Memory):
        kind = type(source).__name__
        raise BadValue(f"A model is a name, a path or a config, and this is a {kind}.")
    if overrides and not (isinstance(overrides, Mapping) and all(map(_is_text, overrides))):
        raise BadValue("--set takes keys of a config with their values.", "As in head_dim=128.")
    if assume not in ("", "full"):
        raise BadValue(f"--assume {str(assume)[:40]!r} is not known.", "Known: full.")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _stored_as_named(model: Model, asked: str) -> Model:
    """The shapes of a file with the weights of a quantised copy, where only the name tells it."""
    weights = model.weights
    if weights is None or not isinstance(weights.storage, Unquantised):
        return model
    mixture = weights.of_role(EXPERT_OUT) > 0
    found = format_of_name(asked, mixture)
    return model if found is None else replace(model, weights=replace(weights, storage=found))


def _expanded(text: str) -> Path:
    """The path of a text, ``~`` as the home where there is one."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _is_path(text: str, path: Path) -> bool:
    try:
        if path.is_file():
            return True
        # A folder named like a model of the catalogue is the folder only if it holds a model.
        if path.is_dir():
            return text.startswith((".", "/", "~")) or _holds_model(path)
    except OSError as error:
        return isinstance(error, PermissionError)
    looks = text.endswith((".json", ".gguf", ".safetensors")) or text.startswith(("/", "./", "~/"))
    return looks and catalogue.find(text) is None and not _is_of_the_hub(text)


def _holds_model(folder: Path) -> bool:
    return (folder / "config.json").exists() or any(folder.glob("*.gguf"))


def _is_of_the_hub(text: str) -> bool:
    """Whether what looks like a path is a file of the hub: no folder here begins it."""
    named = parse_hub_name(text)
    if named is None or not named.file:
        return named is not None and named.prefixed
    return named.prefixed or not Path(named.id.split("/")[0]).is_dir()


class _Reading:
    """What every way of reading needs to know of the question."""

    def __init__(
        self, overrides: dict[str, Any], options: Options, assume: str, offline: bool
    ) -> None:
        self.overrides = overrides
        self.options = options
        self.assume = assume
        self.offline = offline

    def config(self, raw: Mapping[str, Any], name: str, source: str) -> Model:
        """A parsed config, with the keys that were set."""
        changed = _overridden(raw, self.overrides) if self.overrides else raw
        model = read_config(
            changed, name=name, source=source, options=self.options, assume=self.assume
        )
        return _told_by_set(model, self.overrides) if self.overrides else model

    def standard_input(self) -> Model:
        """A config piped in."""
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
        return self.config(parse_object(data, "Standard input"), "standard input", "stdin")

    def path(self, path: Path) -> Model:
        """A file or folder, told by what it holds."""
        if path.is_dir():
            return self.folder(path)
        if not path.exists():
            raise SourceUnreachable(f"There is no file {path}.")
        if not path.is_file():
            raise BadFile(f"{path} is not a regular file.")
        if path.suffix == ".gguf" or _begins_as_gguf(path):
            return self.gguf(path)
        if path.suffix == ".safetensors":
            return self.tensors(path)
        raw = parse_object(read_bounded(path), str(path))
        if "weight_map" in raw and "model_type" not in raw:
            return self.tensors(path)
        return self.config(raw, _name_of(path), str(path))

    def folder(self, path: Path) -> Model:
        """A checkpoint's folder: its config, and exact weights where the headers are there."""
        config = path / "config.json"
        if not config.exists():
            ggufs = sorted(path.glob("*.gguf"))
            if ggufs:
                return self.gguf(ggufs[0])
            config = _other_config(path)
        model = self.config(
            parse_object(read_bounded(config), str(config)), path.resolve().name, str(config)
        )
        if not any(path.glob("*.safetensors*")):
            return model
        from kvplan.readers.folders import LocalFolder
        from kvplan.readers.safetensors import has_tensors, with_exact_weights

        return with_exact_weights(model, path) if has_tensors(LocalFolder(path)) else model

    def gguf(
        self,
        file: Path | RangeReader,
        *,
        name: str = "",
        source: str = "",
        siblings: Siblings | None = None,
    ) -> Model:
        """A GGUF file, or the first of a split one."""
        from kvplan.readers.gguf import read_gguf

        if self.overrides:
            raise BadValue(
                f"--set changes keys of a config.json, and {file.name} is no config.",
                "Leave --set away, or give the model's config.json.",
            )
        return read_gguf(file, name=name, source=source, options=self.options, siblings=siblings)

    def tensors(self, path: Path) -> Model:
        """A safetensors file or its index: the geometry is in the config beside it."""
        if not (path.parent / "config.json").exists():
            raise BadFile(
                f"{path} holds tensors and no geometry.", "Put its config.json beside it."
            )
        return self.folder(path.parent)

    def name(self, text: str) -> Model:
        """A name of the catalogue, then of Ollama's store, then of the hub."""
        named = None if text.startswith("ollama/") else parse_hub_name(text)
        if named is not None and named.is_of_the_hub_alone:
            return self.hub(named)
        found = catalogue.find(text)
        if found is not None:
            return self.known(found, text)
        if ":" in text or text.startswith("ollama/"):
            try:
                return self.ollama(text)
            except UnknownName:
                if named is None:
                    raise
        if named is not None:
            return self.hub(named)
        raise catalogue.unknown(
            text, "See kvplan models, or give a config.json, a .gguf or a hub id (org/name)."
        )

    def published(self, source: str | Path) -> Model:
        """A name of the catalogue or of the hub, and nothing of this machine."""
        text = str(source)
        if isinstance(source, Path) or text == "-":
            reach.check(text[:80])
        found, named = catalogue.find(text), parse_hub_name(text)
        if found is not None and not (named and named.is_of_the_hub_alone):
            return self.known(found, text)
        if named is not None:
            return self.hub(named)
        raise catalogue.unknown(
            text, "See kvplan models, or give a hub id (org/name) or a config.json's text."
        )

    def known(self, found: catalogue.Found, asked: str) -> Model:
        """A model of the catalogue, its weights as the asked name says they are stored."""
        entry = found.entry
        model = self.config(catalogue.config_of(entry), entry.id, f"catalogue: {entry.source}")
        model = replace(model, warnings=_said(found) + model.warnings)
        if entry.quality == "partial" and catalogue.contradicts(entry, model.weights):
            return _uncounted(model)
        return _stored_as_named(model, asked)

    def hub(self, named: HubName) -> Model:
        """A model of the hub."""
        from kvplan.readers.hub import read_hub

        return read_hub(named, self.config, self.gguf, offline=self.offline)

    def ollama(self, text: str) -> Model:
        """A model in Ollama's local store."""
        from kvplan.readers.ollama import read_ollama

        try:
            return read_ollama(text.removeprefix("ollama/"))
        except (UnknownName, SourceUnreachable) as error:
            hint = f"{error.message} Pull it with: ollama pull {text[:80]}"
            raise catalogue.unknown(text, hint) from None


def _begins_as_gguf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def _overridden(raw: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A config with some keys replaced; a dotted key reaches into a section.

    A key that the language model's section holds is replaced there.
    """
    changed = dict(raw)
    for key, value in overrides.items():
        parts = key.split(".")
        section = changed
        if len(parts) == 1 and key not in raw and isinstance(raw.get("text_config"), Mapping):
            parts = ["text_config", key]
        for part in parts[:-1]:
            inner = section.get(part)
            section[part] = dict(inner) if isinstance(inner, Mapping) else {}
            section = section[part]
        section[parts[-1]] = value
    return changed


def _told_by_set(model: Model, overrides: Mapping[str, Any]) -> Model:
    """The model whose facts say which values --set gave."""
    names = defaults.of_type(model.model_type).names
    given = {names.get(last, last) for key in overrides for last in [key.rpartition(".")[2]]}

    def facts() -> dict[str, tuple[object, str]]:
        return {
            key: (value, "--set" if key.rpartition(".")[2] in given else origin)
            for key, (value, origin) in model.facts().items()
        }

    return replace(model, facts=facts)


def _other_config(folder: Path) -> Path:
    """A config of another layout, or that of an adapter, which says what it belongs to."""
    for name in ("params.json", "adapter_config.json"):
        if (folder / name).exists():
            return folder / name
    raise BadFile(f"The folder {folder} has no config.json and no .gguf file.")


def _name_of(path: Path) -> str:
    return path.resolve().parent.name if path.name == "config.json" else path.stem


def _said(found: catalogue.Found) -> tuple[str, ...]:
    """What a name leaves open, and what its copy does."""
    lacks = (
        f"The catalogue's config of {found.entry.id} is partial: what is absent there is unknown."
    )
    return tuple(filter(None, [found.warning, lacks if found.entry.quality == "partial" else ""]))


def _uncounted(model: Model) -> Model:
    """The model without weights, whose number its own name contradicts."""
    said = "Parameters are not counted: the copy lacks keys that decide their number."
    return replace(model, weights=None, warnings=(*model.warnings, said))
