"""Reference worlds, matched rollouts and fidelity metrics for interactive world models.

Importing the package registers the environments with Gymnasium; nothing heavy loads before it is
used.
"""

from wmeval.envs import register_all

__version__ = "0.1.0"

__all__ = ["__version__"]

register_all()
