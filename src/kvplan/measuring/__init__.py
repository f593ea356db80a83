"""A running server measured: the figures that are predicted elsewhere, as a client sees them."""
