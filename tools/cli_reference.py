"""Write the reference of the command, docs/cli.md, from the command itself.

python -m tools.cli_reference            write it
python -m tools.cli_reference --check    say whether it is current, and exit 1 if not
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import typer

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """\
# The command

Generated from the code by `python -m tools.cli_reference`; a test holds it current. `fit`, `advise`
and `simulate` also take every flag of the engine that is asked for, in its own spelling: the last
section lists them.

Exit status: 0 answered, 1 the answer is no, 2 the question is wrong, 3 a source cannot be reached.
`kvplan --install-completion` sets up completion for your shell.
"""


def page() -> str:
    """The whole page."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    parts = [HEAD, *_verbs(), "## Flags of the engines\n", *_engines()]
    return "\n".join(parts)


def _verbs() -> Iterator[str]:
    """Every verb's own help, groups opened."""
    from kvplan.cli import app

    root = typer.main.get_command(app)
    yield from _help(root, click.Context(root, info_name="kvplan"))


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield f"## `{context.command_path}`\n\n```text\n{text.strip()}\n```\n"
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _help(inner, click.Context(inner, info_name=name, parent=context))


def _engines() -> Iterator[str]:
    """The table of each engine's flags."""
    from kvplan.engines.names import ENGINES
    from kvplan.engines.registry import engine_of

    for name in ENGINES:
        rows = [
            f"| `{'`, `'.join(flag.names)}` | {flag.help.replace('|', chr(92) + '|')} |"
            for flag in engine_of(name).flags.flags
        ]
        yield "\n".join([f"### {name}\n", "| flag | what |", "|---|---|", *rows, ""])


def main(check: bool) -> int:
    """Write or check the page."""
    fresh = page()
    if check:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == fresh
        print(f"{PAGE.name} is {'current' if current else 'not current'}")
        return 0 if current else 1
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
