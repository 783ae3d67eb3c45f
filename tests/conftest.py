"""Settings of all tests."""

import pytest
from hypothesis import settings

# The machine is shared: a slow example says nothing about the code.
settings.register_profile("wmeval", deadline=None)
settings.load_profile("wmeval")


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """As where no heavy engine is installed: no variable names one, no environment is made.

    What this very interpreter has stays.
    """
    from wmeval.jobs import installed

    for row in installed.ENVIRONMENTS.values():
        monkeypatch.delenv(row.variable, raising=False)
    monkeypatch.setenv(installed.HOME_VARIABLE, str(tmp_path / "no-environments"))
