"""What real traffic does to an engine's cache: its scheduler's decisions, in virtual time."""
