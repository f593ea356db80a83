"""What was downloaded: configs, indices, and the beginnings of files of tensors.

    $KVPLAN_CACHE or ~/.cache/kvplan
      hub/SHA-256 of (endpoint, repository, revision, file)
          {"key": …, "etag": …, "commit": …, "size": …, "sha256": …} newline, then the bytes
      weights/a file that is served where nothing else is at hand

An entry is written beside its place and moved there, so that no reader sees half of one; one that
does not hold what its first line says is as good as absent.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from kvplan.readers.ranges import MAX_HEADER_BYTES

MAX_ENTRY_BYTES = MAX_HEADER_BYTES + (1 << 16)
WRITING = ".writing"
KINDS = ("hub", "weights")


class Key(NamedTuple):
    """What an entry is of."""

    endpoint: str
    repo: str
    revision: str
    file: str


class Entry(NamedTuple):
    """The beginning of a file, or all of it; ``size`` is the whole file's.

    ``commit`` is the repository's state in which the file was last seen, where the hub told it.
    """

    data: bytes
    size: int
    etag: str = ""
    commit: str = ""


def load(key: Key) -> Entry | None:
    """The entry of a key, or None where there is none that is whole."""
    try:
        with _path(key).open("rb") as file:
            head, _, data = file.read(MAX_ENTRY_BYTES).partition(b"\n")
        said = json.loads(head)
        if said["key"] != list(key) or said["sha256"] != sha256(data).hexdigest():
            return None
        return Entry(data, int(said["size"]), str(said["etag"]), str(said["commit"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def has(key: Key) -> bool:
    """Whether there is an entry of a key, be it whole or not."""
    return _path(key).is_file()


def store(key: Key, entry: Entry) -> None:
    """Keep an entry; a folder that cannot be written keeps none, which costs the next request."""
    said = {
        "key": key, "etag": entry.etag, "commit": entry.commit, "size": entry.size,
        "sha256": sha256(entry.data).hexdigest(),
    }  # fmt: skip
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, json.dumps(said).encode() + b"\n" + entry.data)


def clear_cache() -> tuple[int, int]:
    """Remove every entry; how many files that were, and their bytes."""
    removed = size = 0
    for path in sorted(path for name in KINDS for path in folder_of(name).glob("*")):
        with contextlib.suppress(OSError):
            num_bytes = path.stat().st_size
            path.unlink()
            removed += 1
            size += num_bytes
    return removed, size


def _write(path: Path, data: bytes) -> None:
    """Write beside a path and move it there."""
    handle, name = tempfile.mkstemp(suffix=WRITING, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def folder_of(kind: str) -> Path:
    """Where downloads of a kind are kept: ``hub`` or ``weights``."""
    return Path(os.environ.get("KVPLAN_CACHE") or "~/.cache/kvplan").expanduser() / kind


def _path(key: Key) -> Path:
    return folder_of("hub") / sha256("\n".join(key).encode()).hexdigest()
