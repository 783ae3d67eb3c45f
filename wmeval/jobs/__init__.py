"""How work is run."""
