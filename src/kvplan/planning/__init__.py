"""Questions and their answers: size and fit, and what they are made of."""
