"""Where a rank of vLLM spends its card.

claim_of(node, launch)                       what is asked of a card that others use too
host_ledger(total, weights, …)               the terms of a worker on the CPU
ledger(model, node, launch, version)         the terms of the fullest rank, the pool last
spike(ledger, model, launch, version)        what may still be taken after start-up, and the risk
total_of(node)                               a card's memory as torch sees it
"""

from kvplan.engines.vllm.memory.host import host_ledger
from kvplan.engines.vllm.memory.ledger import Claim, claim_of, ledger, total_of
from kvplan.engines.vllm.memory.spike import Spike, spike

__all__ = ["Claim", "Spike", "claim_of", "host_ledger", "ledger", "spike", "total_of"]
