"""kvplan: size, fit and explain the KV cache of any language model."""

from kvplan._version import __version__

__all__ = ["__version__"]
