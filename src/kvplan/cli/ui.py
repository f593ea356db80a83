"""``kvplan ui``: the page and the JSON API, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.options import Offline


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ui")(ui)


def ui(
    port: Annotated[int, typer.Option("--port", help="Where it listens.")] = 8517,
    host: Annotated[
        str, typer.Option("--host", help="The address; others than this machine's are warned of.")
    ] = "127.0.0.1",
    offline: Offline = False,
) -> None:
    """The page: the same answers in a browser, and as JSON under /api/."""
    from kvplan.core.errors import BadValue, SourceUnreachable, not_installed
    from kvplan.readers.settings import in_use

    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401

        from kvplan.web.serve import is_loopback, run
    except ImportError:
        raise not_installed("The page needs the ui extra", "ui") from None
    if not 0 < port < 65536:
        raise BadValue(f"--port {port} is none.", "Give one from 1 to 65535.")
    if not is_loopback(host):
        typer.echo(
            f"warning: {host} can be reached from other machines, and whoever reaches it may ask: "
            "there is no password. Put a proxy with one before it.",
            err=True,
        )
    shown = f"[{host}]" if ":" in host else host

    settings = in_use()

    def ready() -> None:
        if settings is not None:
            typer.echo(f"{settings.file} holds where a question does not say it", err=True)
        typer.echo(f"kvplan is at http://{shown}:{port}/ (Ctrl-C stops it)")

    try:
        run(host, port, offline=offline, settings=settings, ready=ready)
    except OSError as error:
        said = f"{shown}:{port} cannot be listened on: {error.strerror or error}."
        raise SourceUnreachable(said, "Give another --port.") from None
