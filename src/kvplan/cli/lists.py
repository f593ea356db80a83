"""``kvplan models``, ``gpus`` and ``engines``: what is known, with sources; ``cache clear``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvplan.cli.options import Json

if TYPE_CHECKING:
    from kvplan.core.device import Device

Word = Annotated[str, typer.Argument(metavar="[WORD]", help="Only those with this in the name.")]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("models")(models)
    app.command("gpus")(gpus)
    app.command("engines")(engines)
    cache = typer.Typer(help="What was downloaded.", rich_markup_mode=None)
    cache.command("clear")(clear)
    app.add_typer(cache, name="cache")


def models(word: Word = "", as_json: Json = False) -> None:
    """The models of the catalogue, with where each config is from."""
    from kvplan.cli.table import Table
    from kvplan.readers import catalogue

    found = catalogue.search(word)
    if not found:
        raise catalogue.unknown(word, "kvplan models without a word lists all.")
    rows = [entry._asdict() for entry in found]
    columns = ("model", "type", "copy", "source")
    cells = tuple((e.id, e.model_type, e.quality, e.source[:70]) for e in found)
    _print("models", rows, Table(f"{len(found)} models", columns, cells, "llll"), as_json)


def gpus(word: Word = "", as_json: Json = False) -> None:
    """The devices, with the memory their drivers report and their bandwidth."""
    from kvplan.cli.table import Table
    from kvplan.core.errors import UnknownName
    from kvplan.readers.devices import devices, fold

    asked = fold(word)
    found = [d for d in devices() if any(asked in fold(n) for n in (d.name, d.title, *d.aliases))]
    if not found:
        raise UnknownName("device", word[:100], hint="kvplan gpus without a word lists all.")
    rows = [
        {
            "name": d.name,
            "title": d.title,
            "memory_bytes": d.memory_bytes,
            "bandwidth_bytes_per_s": d.bandwidth_bytes_per_s,
            "dense_flops": d.dense_flops,
            "aliases": d.aliases,
            "price": d.price and d.price.to_dict(),
            "notes": d.notes,
            "sources": d.sources,
        }
        for d in found
    ]
    columns = ("name", "device", "memory", "bandwidth", "your price")
    shown = len(columns) if any(d.price for d in found) else len(columns) - 1
    cells = tuple(_gpu(d)[:shown] for d in found)
    table = Table(f"{len(found)} devices", columns[:shown], cells, "llrrr"[:shown])
    _print("gpus", rows, table, as_json)


def _gpu(device: Device) -> tuple[str, ...]:
    """A device's cells, its own price as the last."""
    from kvplan.cli.table import NONE
    from kvplan.core.units import format_bytes

    rate, price = device.bandwidth_bytes_per_s, device.price
    return (
        device.name,
        device.title,
        format_bytes(device.memory_bytes) if device.memory_bytes else "?",
        f"{rate / 1e9:,.0f} GB/s" if rate else "?",
        f"{price.per_hour:,.2f} {price.currency}" if price else NONE,
    )


def engines(as_json: Json = False) -> None:
    """The engines that fit knows, how it counts, and the releases it has rules for."""
    from kvplan.cli.table import NONE, Table
    from kvplan.engines.names import ENGINES
    from kvplan.engines.registry import engine_of

    known = {name: engine_of(name) for name in ENGINES}
    rows = [
        {"name": name, "how": one.how, "oldest": one.versions[0], "newest": one.versions[1]}
        for name, one in known.items()
    ]
    cells = tuple(
        (name, one.how, " to ".join(filter(None, one.versions)) or NONE)
        for name, one in known.items()
    )
    columns = ("engine", "how", "releases")
    _print("engines", rows, Table("", columns, cells, "lll"), as_json)


def clear(as_json: Json = False) -> None:
    """Remove what was downloaded from the hub."""
    from kvplan.readers.hub_cache import clear_cache

    removed, size = clear_cache()
    if as_json:
        _print("cache", [{"removed_files": removed, "removed_bytes": size}], None, True)
    else:
        typer.echo(f"Removed {removed:,} files, {size:,} B.")


def _print(verb: str, rows: list[dict[str, Any]], table: Any, as_json: bool) -> None:
    import json

    from kvplan._version import __version__
    from kvplan.cli.table import print_table

    if as_json:
        answer = {"kvplan": __version__, "verb": verb, "warnings": [], verb: rows}
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        print_table(table)
