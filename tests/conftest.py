"""Settings of all tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# The machine is shared: a slow example, or one that is slowly made, says nothing about the code.
# Examples are the same in every run, so that a change is blamed for its own failures only;
# --hypothesis-profile=wmeval-search looks for new ones.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("wmeval", derandomize=True, **UNHURRIED)
settings.register_profile("wmeval-search", derandomize=False, **UNHURRIED)
settings.load_profile("wmeval")

# Started in the background of a shell, a process ignores Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """As where no heavy engine is installed: no variable names one, no environment is made.

    What this very interpreter has stays.
    """
    from wmeval.jobs import installed

    for row in installed.ENVIRONMENTS.values():
        monkeypatch.delenv(row.variable, raising=False)
    monkeypatch.setenv(installed.HOME_VARIABLE, str(tmp_path / "no-environments"))
