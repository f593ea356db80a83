"""A real llama.cpp with real weights and nothing to set up, in a process of its own."""
