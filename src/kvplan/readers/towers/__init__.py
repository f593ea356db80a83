"""Vision and audio encoders and projectors: their tensors (they keep no cache)."""
