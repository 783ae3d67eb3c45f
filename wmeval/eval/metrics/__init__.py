"""Metrics as pure functions; `table` names them all."""
