"""Predicted inks against their references."""
