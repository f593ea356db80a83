"""vLLM: its flags, its pages and groups by version, its pool, what it prints, whether it starts."""
