"""A group: layers that share a block table, and what a block of it holds."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.vllm.specs import Request, Spec

Stages = tuple[int, ...]  # the pipeline stage of each layer of one spec, in layer order
Counted = tuple[tuple[Spec, Stages], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """Distinct specs with the layers that have them."""

    members: Counted

    @property
    def spec(self) -> Spec:
        """The first layer's."""
        return self.members[0][0]

    @property
    def layers(self) -> int:
        """Layers that really keep something in it."""
        return sum(len(stages) for _, stages in self.members)

    @property
    def is_mixed(self) -> bool:
        """Whether its layers differ (UniformTypeKVCacheSpecs)."""
        return len(self.members) > 1

    @property
    def page_bytes(self) -> int:
        """A layer's page, or all pages where layers differ."""
        if not self.is_mixed:
            return self.spec.page_bytes
        return sum(spec.page_bytes * len(stages) for spec, stages in self.members)

    def block_bytes(self, stage: int = 0) -> int:
        """Bytes of one block on a stage: the pages of its layers."""
        return sum(spec.page_bytes * stages.count(stage) for spec, stages in self.members)

    def blocks(self, request: Request) -> int:
        """Blocks of one request of the longest length."""
        return max(spec.blocks(request) for spec, _ in self.members)

    def held(self, tokens: int, request: Request) -> int:
        """Blocks of one request of so many tokens while it decodes."""
        return max(spec.held(tokens, request) for spec, _ in self.members)


def dealt(members: Counted, groups: int) -> tuple[CacheGroup, ...]:
    """Layers dealt to groups in turn: the n-th of each spec goes to group n modulo the groups."""
    if groups == 1:
        return (CacheGroup(members=members),)
    return tuple(
        CacheGroup(members=tuple((spec, stages[i::groups]) for spec, stages in members))
        for i in range(groups)
    )


def repeats(counted: Counted) -> dict[int, int]:
    """Layers of each page size."""
    found: dict[int, int] = {}
    for spec, stages in counted:
        found[spec.page_bytes] = found.get(spec.page_bytes, 0) + len(stages)
    return found
