"""Where a measurement was made, so that another day's can be told from it. No secrets are in it."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from kvplan._version import __version__

PACKAGES: Final = ("xllamacpp", "vllm", "sglang", "torch", "h11", "pyarrow", "psutil")


def environment() -> dict[str, Any]:
    """The client's machine and its software."""
    return {
        "kvplan": __version__,
        "python": sys.version.split()[0],
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The CPU's name: /proc/cpuinfo on Linux, else what Python knows."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()[:100]
    except OSError:
        pass
    return platform.processor()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
