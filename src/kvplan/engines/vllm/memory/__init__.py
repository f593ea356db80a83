"""Where a rank of vLLM spends its card.

ledger(model, node, launch, version)         the terms of the fullest rank, the pool last
spike(ledger, model, launch, version)        what may still be taken after start-up, and the risk
"""

from kvplan.engines.vllm.memory.ledger import ledger
from kvplan.engines.vllm.memory.spike import Spike, spike

__all__ = ["Spike", "ledger", "spike"]
