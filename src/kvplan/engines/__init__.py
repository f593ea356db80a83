"""One file an engine: its flags, its defaults by version, and how it spends a card."""
