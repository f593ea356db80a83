"""What prompts share: their beginnings, an engine's hits, where they part, and at what cost."""
