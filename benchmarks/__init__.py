"""Ratios to the bare engine, renderer and disk, measured in one run."""
