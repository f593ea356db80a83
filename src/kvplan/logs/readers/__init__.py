"""One reader an engine: the lines it prints to facts."""
