"""What running servers export at /metrics."""
