"""Ollama in its three times: an estimate before llama.cpp, an engine of its own, llama-server.

eras      which time a release belongs to, and its defaults      flags     environment and options
estimate  what the first Ollama expects, and places layers by    cells     caches of its own engine
plan, engine                                                     what a person is told
"""
