"""transformers' ``generate``: what each ``cache_implementation`` keeps; no server, no admission.

flags      generate's own arguments
caches     bytes of one sequence by cache: dynamic, static, quantised, offloaded
plan       a batch that fits: caches and the prefill's activations
engine     the ledger and the verdict
"""
