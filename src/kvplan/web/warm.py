"""A process that compiles the simulator before it is asked, and keeps that on disk.

After an installation that takes longer than a question may; every later time it is found and read.
"""

from __future__ import annotations

import os

from kvplan.web.jobs import Job, perform
from kvplan.web.verbs import VERBS


def main() -> None:
    """Answer the example, behind whoever is asking meanwhile."""
    os.nice(15)
    perform(Job("api", "simulate", VERBS["simulate"].example, "", True))


if __name__ == "__main__":
    main()
