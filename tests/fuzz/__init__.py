"""Coverage-guided fuzzing with atheris (make fuzz); the suite does it by shape."""
