"""The embedded server as a context: started, waited for, and ended hard whatever it does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import IO, Final

from kvplan.core.errors import SourceUnreachable, not_installed
from kvplan.measuring.embedded.settings import Settings

START_S: Final = 120.0
SAID: Final = 4000  # characters of its log that an error may quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs: where it listens, and its process."""

    address: str
    pid: int
    settings: Settings


@contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """llama.cpp as long as the context lasts.

    Raises:
        BadValue: the ``measure`` extra is not installed.
        SourceUnreachable: it does not start, with the last it said.
    """
    if find_spec("xllamacpp") is None:
        raise not_installed("--embedded needs xllamacpp", "measure")
    command = [sys.executable, "-m", "kvplan.measuring.embedded.serve"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, json.dumps(asdict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is ours: the server ends when we have what it did
        )
        try:
            yield Served(address=_address(process, log), pid=process.pid, settings=settings)
        finally:
            _end(process)


def _address(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Where it listens, once it does."""
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            with suppress(ValueError, LookupError, TypeError):
                return str(json.loads(line)["address"])
    finally:
        timer.cancel()
    raise SourceUnreachable(f"llama.cpp did not start: {_last(log)}")


def _last(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read()[-SAID:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing."


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
