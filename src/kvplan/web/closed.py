"""A process that opens no file but its own: the interpreter's, the package's, the downloaded.

``names_alone`` says it of every source that a question may name; this holds it whatever the code
above does, as the interpreter tells of each file before it is opened.
"""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path

from kvplan.readers import hub_cache, hub_settings

# What libraries read of the system: certificates, fonts, what the processor is.
SYSTEM = ("/etc/ssl", "/usr/share", "/usr/lib", "/sys", "/proc", "/dev/null", "/dev/urandom")

OPENING = {"open", "os.listdir", "os.scandir"}


def close() -> None:
    """From here on this process opens nothing else. It cannot be undone."""
    allowed = tuple(f"{root.rstrip('/')}/" for root in _roots())

    def told(event: str, arguments: tuple[object, ...]) -> None:
        if event in OPENING and isinstance(arguments[0], str | bytes):
            _check(os.fsdecode(arguments[0]), allowed)

    sys.addaudithook(told)


def _check(path: str, allowed: tuple[str, ...]) -> None:
    where = f"{os.path.realpath(path)}/"
    if not where.startswith(allowed):
        raise PermissionError(13, "this server opens no such file")


def _roots() -> list[str]:
    """Folders, as they are named and as they really are."""
    found = [
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        str(files("kvplan")),
        str(hub_cache.folder_of("hub").parent),
        *map(str, hub_settings.folders()),
        *(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")),
        *SYSTEM,
    ]
    return [*map(os.path.realpath, found)]
