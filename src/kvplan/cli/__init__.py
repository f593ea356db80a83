"""The command: one group, a verb a file; thin over the package's functions of the same names."""

from __future__ import annotations

import errno
import json
import os
import sys
from functools import cache
from typing import Annotated, Any, Final

import typer

from kvplan._version import __version__
from kvplan.cli.defaults import (
    Taken,
    as_flags,
    defaults_for,
    given_in,
    note_of,
    reads_settings,
    without_choice,
)
from kvplan.cli.table import plain
from kvplan.core.errors import BadQuestion, KvplanError, SourceUnreachable
from kvplan.readers.settings import open_settings, use

ENGINE_VERBS = ("fit", "advise", "simulate")  # that take an engine's own flags beside theirs

app = typer.Typer(
    name="kvplan",
    help="Size, fit and explain the KV cache of any language model, to the byte.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"kvplan {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    config_file: Annotated[
        str | None,
        typer.Option("--config-file", help="Defaults, in place of the kvplan.toml that is found."),
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Read no kvplan.toml.")] = False,
) -> None:
    """Size, fit and explain the KV cache of any language model, to the byte."""


# What a full or failing disk answers.
UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _register() -> None:
    from kvplan.cli import advise, explain, fit, lab, lists, measure, prefix, simulate, size, ui

    for verb in (size, fit, advise, explain, prefix, measure, lab, simulate, lists, ui):
        verb.register(app)


_register()


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 answered, 1 the answer is no, 2 bad question, 3 no source."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character, or a file name that is no text, is no failure.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run the command and return its exit status; every error is a sentence."""
    verb = ""
    as_json = "--json" in arguments
    try:
        words, file, reads = without_choice(arguments)
        verb = next((word for word in words if not word.startswith("-")), "")
        reads &= not _asks_for_help(words) and (file is not None or reads_settings(verb))
        with use(open_settings(file, by_name=verb == "ui") if reads else None):
            return _answered(words, verb, as_json=as_json)
    except KvplanError as error:
        return _report(error, verb, as_json)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("Stopped.", err=True)
        return 130
    except SystemExit:  # whoever read the output has gone (click 8, core.py, main: EPIPE)
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in UNWRITTEN:
            return _failed(error, verb, as_json)
        # Nothing more is to be written to it, not at the exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        unwritten = SourceUnreachable(f"The answer cannot be written: {error.strerror}.")
        return _report(unwritten, verb, as_json=False)
    except Exception as error:
        return _failed(error, verb, as_json)


def _failed(error: Exception, verb: str, as_json: bool) -> int:
    if os.environ.get("KVPLAN_DEBUG"):
        raise error
    return _report(_usage(error) or _internal(error), verb, as_json)


def _answered(words: list[str], verb: str, *, as_json: bool) -> int:
    """The exit status of a question whose settings are in use; what was taken of them is said."""
    taken = defaults_for(verb, given_in(words))
    behind = words.index(verb) + 1 if taken else 0
    words = [*words[:behind], *as_flags(taken), *words[behind:]]
    answered = False
    try:
        words = _prepared(words, verb) or ["--help"]
        status = _command()(words, standalone_mode=False, prog_name="kvplan", obj=Taken(taken))
        answered = True
        return status if isinstance(status, int) else 0
    finally:
        if taken and not (as_json and answered):
            typer.echo(plain(note_of(taken)), err=True)


@cache
def _command() -> Any:
    """The group with all verbs, built once: to read their signatures takes a tenth of a second."""
    return typer.main.get_command(app)


def _prepared(arguments: list[str], verb: str) -> list[str]:
    """The arguments, with an engine's own flags told from the verb's."""
    if verb not in ENGINE_VERBS or _asks_for_help(arguments):
        return arguments
    from kvplan.cli.engine_flags import carry
    from kvplan.engines.names import DEFAULT_ENGINE

    command = _command().commands.get(verb)
    if command is None:
        return arguments
    own = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return carry(arguments, own, DEFAULT_ENGINE)


def _asks_for_help(arguments: list[str]) -> bool:
    return bool({"--help", "-h"} & set(arguments))


def _usage(error: Exception) -> KvplanError | None:
    """A wrong flag or argument, as the parser of the command line reports it, else None."""
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "kvplan"
    # The parser and its parser both suggest.
    asides = dict.fromkeys(str(describe()).strip().split(" Did you mean "))
    message = " Did you mean ".join(asides)
    ends = message.endswith((".", "?"))
    return BadQuestion(message if ends else f"{message}.", f"See {path} --help.")


def _internal(error: Exception) -> KvplanError:
    return BadQuestion(
        f"kvplan failed on this question ({type(error).__name__}: {error})."[:300],
        "That is a fault of kvplan: please report it. KVPLAN_DEBUG=1 shows where.",
    )


def _report(error: KvplanError, verb: str, as_json: bool) -> int:
    if as_json:
        answer: dict[str, Any] = {"kvplan": __version__, "verb": verb, "error": error.to_dict()}
        typer.echo(json.dumps(answer, ensure_ascii=False))
    typer.echo(plain(f"kvplan: {error}"), err=True)
    return error.exit_status
