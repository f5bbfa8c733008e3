"""How far a recovered trajectory is from the one that was written."""
