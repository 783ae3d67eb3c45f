"""Settings of all tests."""

from hypothesis import settings

# The machine is shared: a slow example says nothing about the code.
settings.register_profile("wmeval", deadline=None)
settings.load_profile("wmeval")
