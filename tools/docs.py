"""Run the commands that the README and the docs show, and write what they print.

    python tools/docs.py            rewrite every shown output that has changed
    python tools/docs.py --check    say which have, and exit 1

A shown command is a block that begins with ``$ kvplan``; what follows it up to the end of the block
is its output. Behind ``| head -N`` stand the first lines alone, behind ``| tail -N`` the last, and
behind ``| grep WORDS`` those that hold the words. The tests run the same.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)
PART = re.compile(r"\s*\|\s*(?:(head|tail) -(\d+)|grep \"?([^\"]+?)\"?)$")


class Shown(NamedTuple):
    """A command in a document and the output that stands under it."""

    path: Path
    command: str
    output: str

    @property
    def name(self) -> str:
        """The document and the command, for a test's name."""
        return f"{self.path.name}: {self.command}"


def documents() -> list[Path]:
    """The README and every page of the docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown(path: Path) -> Iterator[Shown]:
    """Every shown command of a document."""
    for block in BLOCK.findall(path.read_text(encoding="utf-8")):
        for part in re.split(r"^(?=\$ )", block, flags=re.M):
            if part.startswith("$ kvplan "):
                command, _, output = part.partition("\n")
                yield Shown(path, command.removeprefix("$ "), output)


def printed(command: str) -> str:
    """What a command prints, standard error after standard output, without trailing blanks."""
    from kvplan.cli import run

    words = shlex.split(PART.sub("", command))[1:]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run(words if "--config-file" in words else ["--no-config", *words])
    lines = [line.rstrip() for line in (out.getvalue() + err.getvalue()).splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    lines = _part(command, lines)
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def _part(command: str, lines: list[str]) -> list[str]:
    """The lines that the command's filter leaves."""
    asked = PART.search(command)
    if asked is None:
        return lines
    which, number, words = asked.groups()
    if words:
        return [line for line in lines if words in line]
    return lines[: int(number)] if which == "head" else lines[-int(number) :]


def main(check: bool) -> int:
    """Rewrite or check every document."""
    os.environ.update(KVPLAN_OFFLINE="1", COLUMNS="160", NO_COLOR="1")
    stale = 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        fresh = text
        for one in shown(path):
            new = printed(one.command)
            old = f"$ {one.command}\n{one.output}"
            if one.output != new:
                stale += 1
                print(f"changed: {one.name}")
                fresh = fresh.replace(old, f"$ {one.command}\n{new}")
        if not check and fresh != text:
            path.write_text(fresh, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
