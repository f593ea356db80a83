"""What engines print at their start, as typed facts."""
