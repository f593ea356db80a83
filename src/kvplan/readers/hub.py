"""A model of the hub: its config, and exact weights from the headers of its files.

    config.json ─► Model ─► model.safetensors, or the shards of its index ─► exact bytes
    no config, or no safetensors beside it ─► a .gguf

Where headers cannot be had, the config's answer stands, and a warning says why. Offline, the same
files are looked for in kvplan's cache and in that of huggingface_hub.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from kvplan.core.errors import SourceUnreachable
from kvplan.core.model import Model
from kvplan.readers import catalogue, hub_settings
from kvplan.readers.folders import Folder, LocalFolder
from kvplan.readers.gguf.split import Siblings
from kvplan.readers.http_ranges import TIMEOUT_S
from kvplan.readers.hub_folder import CONFIG, OFFLINE, Hub
from kvplan.readers.hub_gguf import choose
from kvplan.readers.hub_name import HubName, parse_hub_name
from kvplan.readers.json_text import MAX_BYTES, parse_object
from kvplan.readers.ranges import RangeReader
from kvplan.readers.safetensors import has_tensors, with_exact_weights

OTHER_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")

ReadConfig = Callable[[Mapping[str, Any], str, str], Model]


class ReadGguf(Protocol):
    """How a GGUF's header becomes a model."""

    def __call__(self, file: RangeReader, *, name: str, source: str, siblings: Siblings) -> Model:
        """The model."""


def read_hub(
    name: str | HubName,
    read_config: ReadConfig,
    read_gguf: ReadGguf | None = None,
    *,
    offline: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> Model:
    """The model that the hub has under a name.

    Args:
        name: ``org/name``, with a revision, a quantisation or a file: see hub_name.
        read_config: the model of a parsed config, a name and a source.
        read_gguf: the model of a GGUF; default: the reader of GGUF files.
        offline: look only at what was downloaded.
        timeout_s: how long the hub may be silent.

    Raises:
        UnknownName: no such model, revision, quantisation or file.
        SourceUnreachable: the hub does not answer, or the model is gated.
        BadFile: what it gives is not what it claims to be.
    """
    asked = parse_hub_name(name) if isinstance(name, str) else name
    if asked is None:
        raise catalogue.unknown(str(name), "A model of the hub is named org/name.")
    with _folder(asked, offline or hub_settings.is_offline(), timeout_s) as folder:
        reading = _Reading(asked, folder, read_config, read_gguf or _read_gguf())
        return reading.file() if asked.file or asked.quant else reading.model()


@contextmanager
def _folder(name: HubName, offline: bool, timeout_s: float) -> Iterator[Folder]:
    """Where the files are: the hub, else what was downloaded of it."""
    hub = Hub(name, offline=offline, timeout_s=timeout_s)
    try:
        if not offline or hub.was_asked:
            yield hub
            return
        path = hub_settings.snapshot(name.id, name.revision)
        if path is None:
            raise catalogue.unknown(str(name), OFFLINE)
        yield LocalFolder(path)
    finally:
        hub.close()


def _read_gguf() -> ReadGguf:
    from kvplan.readers.gguf import read_gguf

    return read_gguf


class _Reading:
    """One question about one repository."""

    def __init__(
        self, name: HubName, folder: Folder, read_config: ReadConfig, read_gguf: ReadGguf
    ) -> None:
        self.name = name
        self.folder = folder
        self.read_config = read_config
        self.read_gguf = read_gguf

    def model(self) -> Model:
        """By its config; by its GGUF where it has no config, or no other weights.

        A repository that is named for its GGUFs may have a config that is a stub.
        """
        if self.name.id.casefold().endswith("-gguf"):
            return self.file()
        data = self.folder.read(CONFIG, MAX_BYTES)
        if data is None:
            return self.file()
        address = f"{self.folder.address}/{CONFIG}"
        model = self.read_config(parse_object(data, address), str(self.name), address)
        try:
            if has_tensors(self.folder):
                return with_exact_weights(model, self.folder)
            names = self.folder.names()
        except SourceUnreachable as error:
            return _warned(model, f"Weights are the config's: {error.message}")
        if any(name.endswith(".gguf") for name in names) and not _has_others(names):
            return self.file()
        return _warned(model, f"Weights are the config's: {self.name.id} has no safetensors.")

    def file(self) -> Model:
        """By a GGUF file."""
        chosen, warning = self.name.file, ""
        if not chosen:
            chosen, warning = choose(self.name.id, self.folder.names(), self.name.quant)
        model = self.read_gguf(
            self.folder.open(chosen),
            name=str(self.name),
            source=f"{self.folder.address}/{chosen}",
            siblings=self.folder.open,
        )
        return _warned(model, warning) if warning else model


def _has_others(names: list[str]) -> bool:
    """Whether there are weights that are no GGUF."""
    return any(name.endswith(OTHER_WEIGHTS) for name in names)


def _warned(model: Model, warning: str) -> Model:
    return replace(model, warnings=(*model.warnings, warning))
