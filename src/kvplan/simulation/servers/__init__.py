"""How engines other than vLLM share their cache, one file an engine, all run by the same loop."""
