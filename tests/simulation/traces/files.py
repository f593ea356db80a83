"""Where the traces are."""

from __future__ import annotations

from pathlib import Path

TRACES = Path(__file__).parents[2] / "reference" / "traces"
CONVERSATION = TRACES / "mooncake_conversation.jsonl.gz"
