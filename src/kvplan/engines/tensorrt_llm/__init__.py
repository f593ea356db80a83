"""TensorRT-LLM: a fraction of the memory that is free after loading, cut into blocks.

flags     trtllm-serve's flags and KvCacheConfig's keys
settings  the flags with their defaults by release
cells     layers to bytes of a token, and of a state
memory    what is free after the engine
blocks    bytes to blocks, one pool a window
plan      what the blocks hold
report    ledger, verdict, the lines of its log
engine    all of it
"""
