"""Comparison of worlds."""
