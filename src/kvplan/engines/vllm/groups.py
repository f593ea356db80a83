"""A group: layers that share a block table, and what a block of it holds."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.vllm.specs import Request, Spec

Counted = tuple[tuple[Spec, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """Distinct specs with the number of layers of each.

    ``start`` and ``step`` say which layers of their kind they are, for pipeline stages: every
    ``step``-th from ``start``.
    """

    members: Counted
    start: int = 0
    step: int = 1

    @property
    def spec(self) -> Spec:
        """The first layer's."""
        return self.members[0][0]

    @property
    def layers(self) -> int:
        """Layers that really keep something in it."""
        return sum(count for _, count in self.members)

    @property
    def is_mixed(self) -> bool:
        """Whether its layers differ (UniformTypeKVCacheSpecs)."""
        return len(self.members) > 1

    @property
    def block_bytes(self) -> int:
        """Bytes of one block: the pages of all layers."""
        return sum(spec.page_bytes * count for spec, count in self.members)

    @property
    def page_bytes(self) -> int:
        """A layer's page, or all pages where layers differ."""
        return self.block_bytes if self.is_mixed else self.spec.page_bytes

    def blocks(self, request: Request) -> int:
        """Blocks of one request of the longest length."""
        return max(spec.blocks(request) for spec, _ in self.members)

    def held(self, tokens: int, request: Request) -> int:
        """Blocks of one request of so many tokens while it decodes."""
        return max(spec.held(tokens, request) for spec, _ in self.members)
