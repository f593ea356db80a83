"""Prompts as text: tokens of a text, messages as one prompt, blocks of tokens as ids."""
