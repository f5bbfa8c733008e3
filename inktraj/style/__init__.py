"""Whose hand an ink is."""
