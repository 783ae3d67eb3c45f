"""wmeval."""
