"""YAML from a source that is not trusted: bounded, every scalar a text, nothing constructed.

PyYAML's scanner alone is used, event by event: no tags are obeyed, no types are guessed, and
nesting needs no stack. A node that is referred to is counted again for each time, so that a few
lines of references to references cannot stand for billions of nodes.
"""

from __future__ import annotations

from typing import Any

from kvplan.core.errors import BadFile

MAX_BYTES = 256 << 10  # a manifest of a whole serving stack has some tens of KiB
MAX_NODES = 50_000
MAX_DEPTH = 60
MERGE = "<<"

Node = Any  # a text, a list of nodes, or a dictionary of text to node


def read_yaml(data: bytes, what: str) -> list[Node]:
    """The documents of a text; ``what`` names it in messages.

    Raises:
        BadFile: too large, not UTF-8, not YAML, too deep, or with too many nodes.
    """
    import yaml

    if len(data) > MAX_BYTES:
        raise BadFile(f"{what} is larger than {MAX_BYTES >> 10} KiB; a manifest is smaller.")
    try:
        text = data.decode("utf-8-sig")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        builder = _Builder(what)
        for event in yaml.parse(text, Loader=loader):
            builder.take(type(event).__name__, event)
    except UnicodeDecodeError as error:
        raise BadFile(f"{what} is not UTF-8 text (byte {error.start:,}).") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", "") or "no YAML"
        raise BadFile(f"{what} is not YAML: {str(problem)[:100]}{place}.") from None
    return builder.documents


class _Open:
    """A collection that is being filled, and the nodes that it stands for."""

    __slots__ = ("anchor", "items", "key", "nodes")

    def __init__(self, anchor: str | None, items: list[Node] | dict[str, Node]) -> None:
        self.anchor, self.items = anchor, items
        self.nodes = 1
        self.key: str | None = None


class _Builder:
    """Nodes from events; the stack is its own."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.documents: list[Node] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.nodes = 0

    def take(self, kind: str, event: Any) -> None:
        """One event."""
        if kind == "ScalarEvent":
            self.add(str(event.value), 1, event.anchor)
        elif kind == "SequenceStartEvent":
            self.open(event.anchor, [])
        elif kind == "MappingStartEvent":
            self.open(event.anchor, {})
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            done = self.stack.pop()
            self.add(done.items, done.nodes, done.anchor)
        elif kind == "AliasEvent":
            node, nodes = self.anchors.get(event.anchor, ("", 1))
            self.add(node, nodes, None)

    def open(self, anchor: str | None, items: list[Node] | dict[str, Node]) -> None:
        """A collection begins."""
        if len(self.stack) >= MAX_DEPTH:
            raise BadFile(f"{self.what} is nested too deeply to be a manifest.")
        self.stack.append(_Open(anchor, items))

    def add(self, node: Node, nodes: int, anchor: str | None) -> None:
        """A node is whole: it goes into the collection that is open, or is a document."""
        if anchor:
            self.anchors[anchor] = node, nodes
        if not self.stack:
            self.documents.append(node)
            return
        parent = self.stack[-1]
        parent.nodes += nodes
        if parent.nodes > MAX_NODES:
            raise BadFile(f"{self.what} has more than {MAX_NODES:,} nodes, references counted.")
        if isinstance(parent.items, list):
            parent.items.append(node)
        elif parent.key is None:
            parent.key = node if isinstance(node, str) else ""
        else:
            _set(parent.items, parent.key, node)
            parent.key = None


def _set(items: dict[str, Node], key: str, node: Node) -> None:
    """A key of a mapping; ``<<`` brings the keys that are not there yet."""
    if key != MERGE:
        items[key] = node
        return
    for other in node if isinstance(node, list) else [node]:
        if isinstance(other, dict):
            for name, value in other.items():
                items.setdefault(name, value)
