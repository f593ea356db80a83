"""llama.cpp's lines of every build, and those of its forks and of what wraps it."""
