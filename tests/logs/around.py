"""What machines, tools and people put around an engine's lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

Text = Callable[[str], str]


def every_line(prefix: str) -> Text:
    return lambda log: "".join(f"{prefix}{line}\n" for line in log.splitlines())


def stamped(log: str) -> str:
    """llama.cpp of 2026 behind a port's tag, in colour."""
    return "".join(
        f"\x1b[34m[53871] \x1b[0m0.{n // 60:02d}.{n % 1000:03d}.559 I \x1b[0m{line}\n"
        for n, line in enumerate(log.splitlines())
    )


def lm_studio(log: str) -> str:
    """LM Studio's stamp on a line of its own, the text below it."""
    lines = "".join(f"2025-08-14 21:59:09 [DEBUG]\n {line}\n" for line in log.splitlines())
    return f"2025-08-14 21:59:08  [INFO]\n [LM STUDIO SERVER] Server started.\n{lines}"


def notebook(log: str) -> str:
    """A cell's output as a notebook keeps it."""
    return "".join(f"      {json.dumps(line + chr(10))},\n" for line in log.splitlines())


def decimal_commas(log: str) -> str:
    """A locale that writes 12312,00 MiB."""
    return re.sub(r"(\d)\.(\d\d) (MiB|GiB)", r"\1,\2 \3", log)


def pulled_apart(log: str) -> str:
    """A progress bar that ends where a line begins."""
    return every_line("Loading:  89%|████████▉ | 8/9 [00:01<00:00, 2.68it/s]\r")(log)


AROUND: dict[str, Text] = {
    "plain": lambda log: log,
    "journald": every_line("Sep 26 10:35:59 host ollama[6664]: "),
    "docker compose": every_line("ollama  | "),
    "kubernetes": every_line("2026-02-12T23:07:32.663270Z stdout F "),
    "quoted": every_line("> "),
    "2026 stamps": stamped,
    "LM Studio": lm_studio,
    "notebook": notebook,
    "decimal commas": decimal_commas,
    "Windows": lambda log: log.replace("\n", "\r\n"),
    "progress": pulled_apart,
}
