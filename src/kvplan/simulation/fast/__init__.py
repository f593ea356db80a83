"""The paged reference over arrays, compiled: the same decisions, a thousand times faster."""
