"""The server: loopback unless told otherwise, and then with a warning."""

from __future__ import annotations

import ipaddress

LOOPBACK_NAMES = ("localhost",)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK_NAMES


def run(host: str, port: int, *, offline: bool = False) -> None:
    """Serve until stopped."""
    import uvicorn

    from kvplan.web.app import LOOPBACK, create_app

    hosts = LOOPBACK | {host} if is_loopback(host) else None
    uvicorn.run(
        create_app(offline=offline, hosts=hosts),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=1 << 17,
    )
