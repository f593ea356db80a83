"""A process that answers jobs, one after the other, until its input ends.

    length (4 bytes) + pickled Settings  ─►  standard input, once
    length (4 bytes) + pickled Job       ─►  standard input
    length (4 bytes) + pickled Reply     ◄─  standard output

Both ends are kvplan's own; what came over the network is inside the job as texts and bytes.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from typing import Any, BinaryIO

from kvplan.readers.settings import use
from kvplan.web.closed import close
from kvplan.web.jobs import Job, perform
from kvplan.web.verbs import VERBS

LENGTH = struct.Struct(">I")


def packed(value: object) -> bytes:
    """A message."""
    data = pickle.dumps(value, protocol=5)
    return LENGTH.pack(len(data)) + data


def main() -> None:
    """Answer until the input ends."""
    # Ctrl-C is the server's to act on, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = sys.stdin.buffer
    close()
    with use(_read(source)):
        _answer(source)


def _answer(source: BinaryIO) -> None:
    perform(Job("page", "fit", VERBS["fit"].example, "answer", True))  # what it needs is read now
    # What a library prints must not get between two replies.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sink.write(packed(()))  # it is ready
    sink.flush()
    while (job := _read(source)) is not None:
        sink.write(packed(tuple(perform(Job(*job)))))
        sink.flush()


def _read(source: BinaryIO) -> Any:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return pickle.loads(source.read(LENGTH.unpack(head)[0]))


if __name__ == "__main__":
    main()
