"""A folder of finished points: one file each, whole or not there, found again by what was asked.

A point's file is named for a digest of its question, so that a sweep that was interrupted goes on,
and one that asks something else in the same folder finds nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvplan._version import __version__
from kvplan.core.errors import SourceUnreachable

MOST_BYTES = 16 << 20
ELSEWHERE = ("progress", "offline")  # what does not change an answer
FILES = ("trace", "time", "model", "tokenizer", "prompt", "output")  # what may be a file


def digest(question: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
    """What a question is found by: its values, the version, and the size and time of its files.

    What is left out and what is given as it would be anyway (``defaults``) is the same.
    """
    usual = {key: str(value) for key, value in (defaults or {}).items()}
    told: dict[str, Any] = {
        key: value if isinstance(value, dict | list) else str(value)
        for key, value in question.items()
        if key not in ELSEWHERE and value not in (None, {}) and str(value) != usual.get(key)
    }
    for key in FILES:
        name = told.get(key)
        if isinstance(name, str) and os.path.isfile(name):
            found = os.stat(name)
            told[key] = [name, found.st_size, found.st_mtime_ns]
    text = json.dumps([__version__, told], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


class Results:
    """The folder, or nowhere: then nothing is kept."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SourceUnreachable(
                    f"{self.folder} cannot be a folder of results: {error.strerror or error}."
                ) from None

    def find(self, key: str) -> dict[str, Any] | None:
        """A finished point; None where there is none, or a file that is not one."""
        if self.folder is None:
            return None
        path = self._path(key)
        try:
            if path.stat().st_size > MOST_BYTES:
                return None
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.get("key") != key:
            return None
        answer = found.get("answer")
        return answer if isinstance(answer, dict) else None

    def save(self, key: str, at: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Writes a point beside its place and moves it there, so that it is whole or absent.

        Raises:
            SourceUnreachable: it cannot be written.
        """
        error = answer.get("error")
        if self.folder is None or (error and error["code"] == SourceUnreachable.code):
            return  # a source that is away now is asked again
        path = self._path(key)
        beside = path.with_suffix(f".{os.getpid()}.part")
        text = json.dumps({"key": key, "at": at, "answer": answer}, ensure_ascii=False, default=str)
        try:
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, path)
        except OSError as error:
            raise SourceUnreachable(
                f"{path} cannot be written: {error.strerror or error}."
            ) from None

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.json"
