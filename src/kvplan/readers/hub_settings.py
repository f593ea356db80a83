"""What the environment says about the hub: the variables that huggingface_hub reads.

HF_ENDPOINT                                  else https://huggingface.co
HF_TOKEN, the file HF_TOKEN_PATH             else HF_HOME/token
HF_HUB_CACHE                                 else HF_HOME/hub
HF_HUB_OFFLINE, KVPLAN_OFFLINE               1: never ask
HF_HOME                                      else ~/.cache/huggingface
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kvplan.core.errors import BadValue

ENDPOINT = "https://huggingface.co"
MAX_TOKEN_BYTES = 4096
TRUE = ("1", "true", "yes", "on")


def endpoint() -> str:
    """The address of the hub, without a slash at its end.

    Raises:
        BadValue: not a plain http or https address.
    """
    found = os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or ENDPOINT
    if not re.fullmatch(r"https?://[\w.\-:\[\]]{1,255}(?:/[\w./-]{0,255})?", found, re.ASCII):
        raise BadValue("HF_ENDPOINT is no address of a hub.", f"It is like {ENDPOINT}.")
    return found


def token() -> str:
    """The reader's token, or an empty text.

    Raises:
        BadValue: it has characters that no token has. It is not shown.
    """
    found = os.environ.get("HF_TOKEN", "").strip() or _stored_token()
    if not re.fullmatch(r"[!-~]*", found):
        raise BadValue("The token of HF_TOKEN has spaces or other characters that no token has.")
    return found


def is_offline() -> bool:
    """Whether the environment forbids asking."""
    return any(
        os.environ.get(name, "").strip().lower() in TRUE
        for name in ("HF_HUB_OFFLINE", "KVPLAN_OFFLINE")
    )


def snapshot(repo_id: str, revision: str) -> Path | None:
    """The folder where huggingface_hub keeps a revision that it has downloaded."""
    root = _hub_cache() / f"models--{repo_id.replace('/', '--')}"
    commit = _text_of(root / "refs" / (revision or "main")) or revision
    folder = root / "snapshots" / commit
    if commit and re.fullmatch(r"[\w.-]+", commit) and folder.is_dir():
        return folder
    return None


def folders() -> tuple[Path, ...]:
    """Where huggingface_hub keeps its downloads and its token."""
    return _hub_cache(), _home()


def _hub_cache() -> Path:
    given = os.environ.get("HF_HUB_CACHE")
    return Path(given).expanduser() if given else _home() / "hub"


def _home() -> Path:
    return Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()


def _stored_token() -> str:
    given = os.environ.get("HF_TOKEN_PATH")
    return _text_of(Path(given).expanduser() if given else _home() / "token")


def _text_of(path: Path) -> str:
    """The text of a small file, or an empty one where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_TOKEN_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
