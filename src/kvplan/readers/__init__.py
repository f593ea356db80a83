"""Readers: any description of a model, in a file or by name, to a ``Model``."""
