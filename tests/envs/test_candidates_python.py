"""Your own class behind the process boundary: what crosses it, and every way a model can fail."""

import os
import signal
import sys
from fractions import Fraction as F

import numpy as np
import pytest

from wmeval.envs.adapters import Keys
from wmeval.envs.candidates import parse_candidate, python
from wmeval.envs.case import Case
from wmeval.envs.model import ModelError
from wmeval.envs.plans import load_plan
from wmeval.errors import UserError

CASE = Case(env_id="BeamDomino", plan=load_plan("BeamDomino", "canonical"), width=32, height=16)
CONTEXT = np.arange(2 * 16 * 32 * 3, dtype=np.uint32).astype(np.uint8).reshape(2, 16, 32, 3)

HEAD = """
import os, signal, sys, time
import numpy as np
from wmeval.envs.model import ModelSpec

class Plain:
    spec = ModelSpec(name="odd", width=32, height=16, frames_per_action=2)
    def reset(self, context_frames, prompt, negative_prompt, seed, intrinsics): pass
    def step(self, controls): return np.zeros((2 * len(controls), 16, 32, 3), np.uint8)
    def close(self): pass

"""


@pytest.fixture
def write(tmp_path):
    """Writes a file of models and gives the candidate of one of its classes."""

    def candidate(body, options="", name="Odd", folder=tmp_path):
        (folder / "odd.py").write_text(HEAD + body)
        return parse_candidate(f"python:{folder / 'odd.py'}:{name}{options}")

    return candidate


def run(candidate, case=CASE, step_within=None):
    """Every verb once; the frames of the step."""
    model = candidate(case)
    try:
        if step_within is not None:  # it is up: what it takes to start is another matter
            assert model._host.client._timeout == 200
            model._host.client._timeout = step_within
        model.reset(CONTEXT, "push", "blur", 7, np.eye(3) / 3)
        return model.step((np.zeros(2),))
    finally:
        model.close()


# --- failures -----------------------------------------------------------------------------------

ODD = "class Odd(Plain):\n    "
FAULTS = """
class Mute(Exception):
    def __str__(self): raise RuntimeError("no text")

class leaves(Plain):
    def step(self, c): sys.exit(0)
class exits(Plain):
    def step(self, c):
        print("not flushed")
        os._exit(0)
class killed(Plain):
    def step(self, c):
        print("first\\nout of luck" + "k" * 900, file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
class hangs(Plain):
    def step(self, c): time.sleep(600)
class raises(Plain):
    def step(self, c): self.inner()
    def inner(self): raise ValueError("a\\nb" * 999)
class mute(Plain):
    def step(self, c): raise Mute
class reset(Plain):
    def reset(self, *_): {}["x"]
class close(Plain):
    def close(self): sys.exit(3)
class both(Plain):
    def step(self, c): 1 / 0
    def close(self): raise ValueError("close hides what was first")
class made(Plain):
    def __init__(self): sys.exit()
class card(Plain):
    @property
    def spec(self): 1 / 0
class few(Plain):
    def step(self, c): return np.zeros((1, 16, 32, 3), np.uint8)
class listed(Plain):
    def step(self, c): return [1]
class stepless(Plain):
    step = None

def Odd(case):
    return globals()[case.plan.name]()
"""
MESSAGES = {
    "leaves": r"model 'odd': step raised SystemExit: 0 \(odd\.py:\d+\)$",
    "exits": r"odd\.py:Odd died \(exit status 0\) during 'step'; it printed last: not flushed$",
    "killed": r"odd\.py:Odd died \(killed by SIGKILL\) during 'step'; it printed last: "
    r"out of luckk+ \.\.\.$",
    "hangs": r"odd\.py:Odd 'step' took longer than 3 s; is it hanging\? \(timeout=\.\.\. ",
    "raises": r"model 'odd': step raised ValueError: a ba ba .* \.\.\. \(odd\.py:\d+\)$",
    "mute": r"model 'odd': step raised RuntimeError: no text",
    "reset": r"model 'odd': reset raised KeyError: 'x'",
    "close": r"model 'odd': close raised SystemExit: 3",
    "both": r"model 'odd': step raised ZeroDivisionError",
    "made": r"candidate python: Odd\(\) raised SystemExit \(odd",
    "card": r"card: spec raised ZeroDivisionError: division by zero \(odd\.py:\d+\)",
    "few": r"model 'odd': step returned the wrong number of frames, \(1, 16, 32, 3\); expected",
    "listed": r"model 'odd': step returned a list",
    "stepless": r"model 'odd' \(stepwise\) has no method 'step'",
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    path = tmp_path_factory.mktemp("faulty") / "odd.py"
    path.write_text(HEAD + FAULTS)
    return parse_candidate(f"python:{path}:Odd,timeout=200")


@pytest.mark.parametrize("fault", MESSAGES)
def test_whatever_a_model_does_is_one_line_that_names_it(faulty, fault):
    plan = CASE.plan.model_copy(update={"name": fault})
    case = CASE.model_copy(update={"plan": plan})
    with pytest.raises(ModelError, match=MESSAGES[fault]) as caught:
        run(faulty, case, step_within=3.0 if fault == "hangs" else None)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


def test_an_import_that_leaves_is_one_line(write):
    with pytest.raises(ModelError, match=r"import of \S+odd\.py raised SystemExit: no GPU \(odd"):
        write("sys.exit('no GPU')")(CASE)


def test_a_process_that_died_is_started_anew(write):
    candidate = write(ODD + "def reset(self, c, prompt, *a): prompt == 'die' and os._exit(1)")
    first, second = candidate(CASE), candidate(CASE)
    with pytest.raises(ModelError, match="during 'reset'"):
        first.reset(CONTEXT, "die", "", 0, np.eye(3))
    with pytest.raises(ModelError, match="is gone"):  # they shared the process
        second.step((np.zeros(2),))
    assert len(run(candidate)) == 2


def test_an_interrupt_ends_the_models_process(write):
    # The model itself interrupts who waits for it.
    stepping = "def step(self, c): os.kill(os.getppid(), signal.SIGUSR1); time.sleep(600)"
    model = write(ODD + stepping)(CASE)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.step((np.zeros(2),))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert model._host.client._process.wait(60) == -signal.SIGKILL
    model.close()


# --- what crosses -------------------------------------------------------------------------------

CHECKS = """
class Checks(Plain):
    def reset(self, context_frames, prompt, negative_prompt, seed, intrinsics):
        assert context_frames.shape == (2, 16, 32, 3) and context_frames.dtype == np.uint8
        assert context_frames.sum() == {total} and context_frames.flags.writeable
        assert (prompt, negative_prompt, seed) == ("push", "blur", 7)
        assert intrinsics.tolist() == (np.eye(3) / 3).tolist()
        self.n = 0

    def step(self, controls):
        from wmeval.envs.adapters import Keys
        a, b, c, d = controls
        assert a.dtype == np.float64 and a.tolist() == [0.1 + 0.2, -1 / 3]
        assert b == Keys(("A",), ("SPACE",)) and c == "push it" and d.shape == (4, 4)
        self.n += 8
        out = np.empty((8, 16, 32, 3), np.uint8)
        out[:] = np.arange(self.n - 8, self.n).reshape(8, 1, 1, 1)
        return out
"""


def test_context_controls_and_frames_cross_exactly(write):
    candidate = write(CHECKS.format(total=int(CONTEXT.sum())), name="Checks")
    controls = (np.array([0.1 + 0.2, -1 / 3]), Keys(("A",), ("SPACE",)), "push it", np.eye(4))
    model = candidate(CASE)
    model.reset(CONTEXT, "push", "blur", 7, np.eye(3) / 3)
    clips = [model.step(controls) for _ in range(2)]
    model.close()
    frames = np.concatenate([c.frames for c in clips])
    assert frames[:, 5, 7, 1].tolist() == list(range(16))
    assert clips[1].times == tuple(F(j, 24) for j in range(9, 17))
    assert clips[0].record is None
    assert model.seed_record is None


def test_a_simulators_record_comes_along(write):
    body = """
from wmeval.records import Clip

class Odd(Plain):
    def __init__(self, case):
        with case.open() as env:
            self.seed_record = env.log
        self.name = case.case_id

    def step(self, controls):
        record = self.seed_record.rows(np.zeros(2, np.int64))
        return Clip(super().step(controls), self.spec.times(1, 2), record)
"""
    candidate = write(body)
    with CASE.open() as env:
        truth = env.log.state.sha256()
    model = candidate(CASE)
    model.reset(CONTEXT, "", "", 0, np.eye(3))
    clip = model.step((np.zeros(2),))
    model.close()
    assert model.seed_record.state.sha256() == truth
    assert clip.record.state.rows([0]).sha256() == truth
    assert len(clip.record) == 2


def test_one_process_serves_all_cases_and_what_it_prints_is_shown(write, capfd):
    candidate = write(
        "COUNT = [0]\n"
        "class Odd(Plain):\n"
        "    def __init__(self):\n"
        "        COUNT[0] += 1\n"
        "        print('made', COUNT[0], os.getpid())\n"
    )
    models = [candidate(CASE, generation=g) for g in range(3)]
    for model in models:
        model.close()
    models[0]._host.client.close()
    out, err = capfd.readouterr()
    assert out == ""
    rows = [line.split() for line in err.splitlines()]
    assert [row[:2] for row in rows] == [["made", str(n)] for n in (1, 2, 3)]
    assert len({row[2] for row in rows}) == 1
    assert rows[0][2] != str(os.getpid())


# --- interpreters and files ---------------------------------------------------------------------


def interpreter(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f",python={path}"


def test_the_models_own_interpreter_with_all_its_threads(write, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    name = "os.environ['WHERE'] + os.environ.get('OMP_NUM_THREADS', '')"
    body = f"class Odd(Plain):\n    spec = ModelSpec(name={name})\n"
    other = interpreter(tmp_path / "py", f'WHERE=elsewhere exec "{sys.executable}" "$@"')
    assert write(body, other)(CASE).spec.name == "elsewhere"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo Traceback >&2; echo \"No module named 'numpy'\" >&2; exit 1",
         r"py did not start; it printed last: No module named 'numpy'; the model's environment "
         "needs numpy, pydantic and PyYAML"),
        ("exit 0", "py did not start; the model's environment needs"),
        (None, "cannot run .*py.*name a Python"),
    ],
)  # fmt: skip
def test_an_interpreter_that_cannot_be_used(write, tmp_path, script, message):
    option = (
        f",python={tmp_path / 'py'}" if script is None else interpreter(tmp_path / "py", script)
    )
    with pytest.raises(UserError, match=message) as caught:
        write(ODD + "pass", option)(CASE)
    assert "\n" not in str(caught.value)


def test_a_changed_file_is_imported_anew(write):
    body = "class Odd(Plain):\n    spec = ModelSpec(name='{}')\n"
    assert write(body.format("before"))(CASE).spec.name == "before"
    assert write(body.format("after"))(CASE).spec.name == "after"


def test_the_fingerprint_is_of_card_and_imported_sources(write, tmp_path):
    def digest(folder, helper="WIDTH = 32\n", body="", stray=""):
        home = tmp_path / folder
        home.mkdir()
        (home / "odd_helper.py").write_text(helper)
        (home / "stray.py").write_text(stray)
        body = f"import odd_helper\n{body}\nclass Odd(Plain):\n    pass\n"
        return write(body, folder=home).fingerprint(CASE)

    first = digest("a")
    assert len(first) == 64
    # Not of where it lies, nor of what it does not import.
    assert digest("b", stray="x = 1") == first
    assert digest("d", helper="WIDTH = 33\n") != first
    assert digest("e", body="# changed") != first


def test_the_fingerprint_is_of_a_card_that_depends_on_the_case(write):
    body = (
        "class Odd(Plain):\n    def __init__(self, case): self.spec = ModelSpec(name=case.view)\n"
    )
    candidate = write(body)
    other = CASE.model_copy(update={"view": "top"})
    assert candidate.fingerprint(CASE) != candidate.fingerprint(other)
    assert candidate.fingerprint(CASE) == candidate.fingerprint(CASE, generation=3)


def test_an_installed_module_is_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "odd_package").mkdir()
    (tmp_path / "odd_package" / "__init__.py").write_text("")
    (tmp_path / "odd_package" / "models.py").write_text(HEAD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    candidate = parse_candidate("python:odd_package.models:Plain")
    assert len(run(candidate)) == 2
    assert set(python._host(candidate.options).sources) == {"odd_package", "odd_package.models"}
