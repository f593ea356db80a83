"""How a request can fail, as kinds that are counted; ``http_503`` and the like are made by status.

refused, connect_timeout                        nobody listens, or nobody accepts
http_NNN                                        a status that is no answer
first_token_timeout, stalled, too_long          it goes quiet before, between, or never ends
reset, truncated                                the connection breaks, or ends without an end
malformed, too_large                            no server-sent events, no JSON, or without bound
error_event                                     the server says in the stream that it failed
no_tokens                                       a whole answer without a token in it
interrupted                                     the measurement was ended
"""

from __future__ import annotations

from typing import Final

REFUSED: Final = "refused"
CONNECT_TIMEOUT: Final = "connect_timeout"
FIRST_TOKEN_TIMEOUT: Final = "first_token_timeout"
STALLED: Final = "stalled"
TOO_LONG: Final = "too_long"
RESET: Final = "reset"
TRUNCATED: Final = "truncated"
MALFORMED: Final = "malformed"
TOO_LARGE: Final = "too_large"
ERROR_EVENT: Final = "error_event"
NO_TOKENS: Final = "no_tokens"
INTERRUPTED: Final = "interrupted"


class Failed(Exception):
    """A request that failed: its kind, and what was seen, in a phrase."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail[:300]


def of_status(status: int, body: bytes) -> Failed:
    """The failure of an HTTP status, with the beginning of what it says."""
    said = " ".join(body[:600].decode("utf-8", "replace").split())
    return Failed(f"http_{status}", said)
