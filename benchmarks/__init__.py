"""One script a figure that the README or the docs quote; each runs its peer in the same run."""
