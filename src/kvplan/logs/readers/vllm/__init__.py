"""vLLM's lines, 0.2 to 0.32."""
