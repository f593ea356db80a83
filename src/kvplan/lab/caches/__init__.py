"""Caches of keys and values, one a file, as transformers' ``Cache``, for ``generate`` too."""
