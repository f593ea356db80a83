"""An engine that pages its cache, decision by decision, in plain Python: the reference."""
