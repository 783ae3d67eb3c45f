"""Sweeps: GAUGE's families over engines, settings and grids, each cell against what is true."""
