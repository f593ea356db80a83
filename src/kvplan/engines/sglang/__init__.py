"""SGLang: its flags, its static share of a card, its pools and what it prints of them.

flags       the flags in its own spelling
rules       what changed in which release
settings    the flags with their defaults: layout, pages, format, limits
fraction    chunks, graph batches and mem_fraction_static where they are not given
elements    the formats of a cache
cells       layers to bytes of a token (full, window) and of a state slot
compressed  the same for DeepSeek V4's pools
pools       bytes to tokens and slots, and back to the printed sizes
requests    the cap on running requests
plan        what the pools hold
prints      the lines of its log
engine      the ledger and the verdict
"""
