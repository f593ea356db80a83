"""The server: loopback unless told otherwise, and then with a warning."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable

from kvplan.readers.settings import Settings

LOOPBACK_NAMES = ("localhost",)
FIRST_LINES_S = 20.0  # a connection has asked something by then, or is closed


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def run(
    host: str,
    port: int,
    *,
    offline: bool = False,
    settings: Settings | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve until stopped; ``ready`` is called when the first question can be answered.

    ``settings`` hold where a question does not say it, as they are now.

    Raises:
        OSError: the address is taken, or none of this machine.
    """
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from kvplan.web.app import LOOPBACK, create_app

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.loop.call_later(FIRST_LINES_S, self._is_late)

        def _is_late(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if ready is not None and self.started:
                ready()

    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, port))
    config = uvicorn.Config(
        create_app(
            offline=offline,
            hosts=LOOPBACK | {host} if is_loopback(host) else None,
            settings=settings,
        ),
        http=Protocol,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=1 << 17,
    )
    Server(config).run(sockets=[bound])
