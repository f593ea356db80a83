"""An answer to the terminal or to a file, in the form that was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import typer

from kvplan.cli.defaults import Taken, with_defaults
from kvplan.cli.table import csv_text, plain, print_table
from kvplan.core.errors import BadValue, SourceUnreachable
from kvplan.planning.answer import Answer

TEXT_ENDINGS = (".json", ".csv", ".md")
CHART_ENDINGS = (".html", ".png", ".svg")


def show(answer: Answer, *, as_json: bool, explain: bool, output_file: str | None) -> None:
    """Print the answer, and write it to a file where one is named.

    Raises:
        BadValue: a file ending that is not known, or a plot without the ``plot`` extra.
        SourceUnreachable: the file cannot be written.
    """
    if output_file is not None:
        write(answer, Path(output_file))
    if as_json:
        typer.echo(json.dumps(_body(answer), ensure_ascii=False))
        return
    if output_file is None:
        for table in _form(answer).tables(answer):
            print_table(table)
    if explain:
        typer.echo(plain("\n".join(_form(answer).explanation(answer))))
    for text in answer.warnings:
        typer.echo(plain(f"warning: {text}"), err=True)
    if output_file is not None:
        typer.echo(f"wrote {output_file}")


def write(answer: Answer, path: Path) -> None:
    """One file, by its ending."""
    ending = path.suffix.lower()
    own = getattr(_form(answer), "WRITERS", {})
    mine = next((end for end in own if path.name.lower().endswith(end)), "")
    if not mine and ending not in TEXT_ENDINGS + CHART_ENDINGS:
        known = " ".join((*TEXT_ENDINGS, *CHART_ENDINGS, *own))
        raise BadValue(f"{path.name} ends in nothing that can be written.", f"Known: {known}.")
    try:
        if mine:
            own[mine](answer, path)
        elif ending in CHART_ENDINGS:
            from kvplan.charts import save

            save(answer, path)
        else:
            text = _text(answer, ending)
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be written: {error.strerror or error}.") from None


def _text(answer: Answer, ending: str) -> str:
    if ending == ".json":
        return json.dumps(_body(answer), ensure_ascii=False, indent=2) + "\n"
    if ending == ".md":
        return "\n".join(table.markdown() for table in _form(answer).tables(answer))
    records = getattr(_form(answer), "records", None)
    if records is not None:
        return csv_text(*records(answer))
    return csv_text(("key", "value"), _flat(_body(answer)))


def _body(answer: Answer) -> dict[str, Any]:
    """The answer's JSON, with the defaults that its question took of a file."""
    context = click.get_current_context(silent=True)
    taken = context.obj if context else None
    return with_defaults(answer.to_dict(), taken.values if isinstance(taken, Taken) else {})


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, object]]:
    """Every value of an answer under its path: ``ledger.0.bytes``."""
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, "" if value is None or value in ({}, []) else value


def _form(answer: Answer) -> Any:
    """The module that shows answers of a verb to people."""
    return import_module(f"kvplan.cli.{answer.verb}_tables")
