import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import wmeval.doctor
from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.jobs.installed import (
    ENVIRONMENTS,
    Installable,
    install,
    interpreter,
    mend,
    version,
)
from wmeval.jobs.worker import WorkerClient
from wmeval.sim.engines.engine_options import info_of

VARIABLE = "WMEVAL_TINY_PYTHON"
HANDLERS = """
import tinyengine
import numpy as np
def handlers():
    return {"ask": lambda header, buffers: ({"says": tinyengine.SAYS}, {"x": np.arange(3)})}
"""
INSTALL_AND_DIE = """
import os, signal
from wmeval.jobs import installed
def told(line):
    if line.startswith(("Looking in", "Processing")):  # pip is at it
        os.kill(os.getpid(), signal.SIGKILL)
row = installed.Installable("tiny", "", ("tinyengine==1.0",), ("tinyengine",), "tinyengine", "", 1)
installed.ENVIRONMENTS["tiny"] = row
installed.install("tiny", progress=told)
"""


def write_wheel(folder, name="tinyengine", release="1.0", says="hello"):
    """A wheel of one module, as a build backend would write it."""
    info = f"{name}-{release}.dist-info"
    files = {
        f"{name}.py": f"SAYS = {says!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{release}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A row "tiny" whose wheel lies in a folder, and a home of its own; no network."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels)
    monkeypatch.setenv("WMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.delenv(VARIABLE, raising=False)
    row = Installable(
        "tiny", "a module", ("tinyengine==1.0",), ("tinyengine",), "tinyengine", VARIABLE, 1
    )
    monkeypatch.setitem(ENVIRONMENTS, "tiny", row)
    return wheels


def change(monkeypatch, **fields):
    row = ENVIRONMENTS["tiny"]
    kept = {name: getattr(row, name) for name in Installable.__dataclass_fields__}
    monkeypatch.setitem(ENVIRONMENTS, "tiny", Installable(**{**kept, **fields}))


def leftovers():
    return [p.name for p in installed.home().iterdir() if p.name.startswith(".wmeval-tmp")]


def at_work():
    """Whether a process runs that was told of the environments."""
    home = os.fsencode(installed.home())
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if home in path.read_bytes():
                return True
    return False


def test_what_is_not_there_says_how_it_is_got(tiny, monkeypatch):
    assert mend("tiny") == "wmeval install tiny"
    change(monkeypatch, by_hand="ask its makers")
    assert mend("tiny") == "ask its makers"
    with pytest.raises(UserError, match=r"tinyengine is not installed: ask its makers$"):
        interpreter("tiny")
    info = info_of("tiny", ("rigid",), deterministic=True, impulses=True)
    assert info.mend == "ask its makers"


def test_an_environment_is_made_used_by_its_name_and_made_once(tiny, capsys, tmp_path):
    with pytest.raises(UserError, match="tinyengine is not installed: wmeval install tiny"):
        interpreter("tiny")
    assert version("tiny") is None
    with pytest.raises(SystemExit) as done:
        main(["install", "tiny"])
    assert done.value.code == 0
    assert "tinyengine 1.0" in capsys.readouterr().out
    python = interpreter("tiny")
    assert python == str(installed.home() / "tiny" / "bin" / "python")
    assert version("tiny") == "1.0"
    asked = subprocess.run(
        [python, "-I", "-c", "import tinyengine, sys; print(tinyengine.SAYS, sys.prefix)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.split() == ["hello", str(installed.home() / "tiny")]
    # Its scripts name the place where it stands, not the one where it was made.
    made = [p for p in (installed.home() / "tiny").rglob("*") if p.is_file()]
    assert not [p for p in made if b".wmeval-tmp" in p.read_bytes()]
    assert leftovers() == []
    before = os.stat(installed.home() / "tiny").st_ino
    install("tiny")  # is there
    assert os.stat(installed.home() / "tiny").st_ino == before
    finding = wmeval.doctor._environment("tiny")
    assert (finding.status, finding.needed) == ("ok", False)
    assert finding.detail == f"tinyengine 1.0, {python}"
    # A worker under it sees its packages; numpy is lent, as there is no index to have it from.
    path = tmp_path / "serve.py"
    path.write_text(HANDLERS)
    site = next((installed.home() / "tiny" / "lib").glob("python*/site-packages"))
    (site / "numpy").symlink_to(np.__path__[0])
    libraries = np.__path__[0] + ".libs"
    if os.path.isdir(libraries):
        (site / "numpy.libs").symlink_to(libraries)
    with WorkerClient(f"{path}:handlers", python=python) as worker:
        header, arrays = worker.call("ask")
    assert header == {"says": "hello"}
    assert arrays["x"].tolist() == [0, 1, 2]


def test_a_killed_install_leaves_nothing_half_and_the_next_one_cleans_up(tiny):
    died = subprocess.run([sys.executable, "-c", INSTALL_AND_DIE], check=False).returncode
    assert died == -signal.SIGKILL
    until = time.monotonic() + 100
    while at_work():  # pip ends at its next line
        assert time.monotonic() < until
        time.sleep(0.05)
    assert installed.recorded("tiny") is None
    assert leftovers() != []
    assert version("tiny") is None
    install("tiny")
    assert version("tiny") == "1.0"
    assert leftovers() == []


def test_what_pip_says_is_one_line_and_an_older_environment_stays(tiny, monkeypatch, capsys):
    folder = install("tiny")
    change(monkeypatch, requirements=("tinyengine==2.0",))
    with pytest.raises(SystemExit) as done:
        main(["install", "tiny"])
    assert done.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: wmeval install tiny: No matching distribution found for tiny")
    assert "pip config list" in said
    assert version("tiny") == "1.0"
    assert leftovers() == []
    # The row asks for more than is there: it is made anew.
    write_wheel(tiny, release="2.0", says="again")
    install("tiny")
    assert version("tiny") == "2.0"
    record = json.loads((folder / "wmeval-environment.json").read_text())
    assert record["versions"]["tinyengine"] == "2.0"
    assert record["requirements"] == ["tinyengine==2.0"]


def test_unknown_names_are_refused_before_anything_is_made(tiny, capsys):
    with pytest.raises(SystemExit) as done:
        main(["install", "tiny", "nowton"])
    assert done.value.code == 2
    assert "no environment 'nowton': choose from blender, " in capsys.readouterr().err
    assert not installed.home().exists()


def test_a_stranger_is_not_replaced(tiny):
    place = installed.home() / "tiny"
    place.mkdir(parents=True)
    (place / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match=r"wmeval did not write here \(thesis.tex\)"):
        install("tiny")
    assert (place / "thesis.tex").read_text() == "mine"


def test_the_interpreter_asked_for_comes_first(tiny, monkeypatch):
    assert interpreter("tiny", "/some/python") == "/some/python"
    monkeypatch.setenv(VARIABLE, "/other/python")
    assert interpreter("tiny") == "/other/python"
    assert interpreter("tiny", "/some/python") == "/some/python"
    assert interpreter("blender", "tiny") == "/other/python"  # by the name of an environment
    assert version("tiny") is None  # it cannot be run
    monkeypatch.delenv(VARIABLE)
    # This interpreter's own, if its release will do.
    change(monkeypatch, packages=("numpy",))
    assert interpreter("tiny") == sys.executable
    assert version("tiny") == np.__version__
    change(monkeypatch, release="0.")
    with pytest.raises(UserError, match="is not installed"):
        interpreter("tiny")


def test_one_environment_may_stand_in_for_another(tiny, monkeypatch):
    own = installed.home() / "large"
    (own / "bin").mkdir(parents=True)
    (own / "bin" / "python").symlink_to(sys.executable)
    (own / "wmeval-environment.json").write_text('{"versions": {}}')
    monkeypatch.setitem(ENVIRONMENTS, "large", ENVIRONMENTS["tiny"])
    change(monkeypatch, also=("large",))
    assert interpreter("tiny") == str(own / "bin" / "python")
    (own / "bin" / "python").unlink()  # its Python was removed from the machine
    with pytest.raises(UserError, match="is not installed"):
        interpreter("tiny")


def test_a_python_that_will_not_do_is_refused(tiny, monkeypatch):
    change(monkeypatch, python="3.7")
    with pytest.raises(UserError, match=r"tinyengine needs Python 3.7, and there is no python3.7"):
        install("tiny")
    with pytest.raises(UserError, match=r"needs Python 3.7; .* is Python 3"):
        install("tiny", python=sys.executable)
    with pytest.raises(UserError, match="cannot run '/no/python'"):
        install("tiny", python="/no/python")


def test_list_shows_every_environment(tiny, capsys):
    with pytest.raises(SystemExit):
        main(["install", "--list"])
    out = capsys.readouterr().out
    assert all(name in out for name in ENVIRONMENTS)
