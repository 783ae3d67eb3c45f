"""The code of docs/guide/candidates.md runs as it stands there."""

import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import wmeval
from wmeval.envs.adapters import channels_of, ineligible, make_adapter
from wmeval.envs.base import WorldEnv
from wmeval.envs.candidates import parse_candidate
from wmeval.envs.case import Case
from wmeval.envs.plans import load_plan
from wmeval.envs.wrapper import drive, drive_together

GUIDE = Path(wmeval.__file__).parents[1] / "docs" / "guide" / "candidates.md"


def blocks():
    found = re.findall(r'```python title="(\S+)"\n(.*?)```', GUIDE.read_text(), re.S)
    assert [name for name, _ in found] == ["shift.py", "zoom.py", "server.py"]
    return dict(found)


@pytest.fixture
def files(tmp_path, monkeypatch):
    for name, text in blocks().items():
        (tmp_path / name).write_text(text)
    rng = np.random.default_rng(0)

    def draw(self, layers=("rgb",), *, width=None, height=None, view=None, log=None, row=-1):
        return {"rgb": rng.integers(0, 256, (height, width, 3), np.uint8)}

    monkeypatch.setattr(WorldEnv, "draw", draw)
    return tmp_path


CASE = Case(env_id="BeamDomino", plan=load_plan("WMEval/BeamDomino-v0", "canonical"))


def driven(text):
    with CASE.open() as env:
        model = parse_candidate(text)(CASE)
        period = env.clock.control_period
        adapter = make_adapter(model.spec, channels_of(env), control_period=period)
        context = CASE.context(env, model.spec)
        clip = drive(model, adapter, CASE.actions(env)[:90], context)
    return model, clip


def lines(name):
    return len([x for x in blocks()[name].splitlines() if x.strip()])


def test_the_examples_are_short():
    assert lines("shift.py") <= 20
    assert lines("zoom.py") <= 20
    assert lines("server.py") <= 45


def test_the_stepwise_model_runs(files):
    _, clip = driven(f"python:{files / 'shift.py'}:Shift")
    assert len(clip) == 9 * 4 + 1
    assert np.array_equal(clip.frames[8], np.roll(clip.frames[0], 32, axis=1))  # full force


def test_the_clip_model_runs_and_is_ineligible_for_causality(files):
    model, clip = driven(f"python:{files / 'zoom.py'}:Zoom")
    assert len(clip) == 6 * 4 + 1
    assert not np.array_equal(clip.frames[-1], clip.frames[0])
    assert "viewer's own navigation" in ineligible(CASE.env_id, "causality", model.spec)
    assert ineligible(CASE.env_id, "controllability", model.spec) is None


def test_the_environment_runs_and_prints_what_the_page_says(files, monkeypatch, capsys):
    section = GUIDE.read_text().partition("## As an environment")[2]
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", section, re.S)[:2]
    monkeypatch.syspath_prepend(files)
    exec(compile(code, "page", "exec"), {})
    assert capsys.readouterr().out == shown


def test_the_server_runs(files):
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(files / "server.py"), str(port)], stderr=-3)
    try:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/spec", timeout=10).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        model, clip = driven(f"http://127.0.0.1:{port}")
        assert model.spec.name == "served"
        assert len(clip) == 37
        assert (clip.frames == clip.frames[0]).all()
        with CASE.open() as env:
            models = [parse_candidate(f"http://127.0.0.1:{port}")(CASE) for _ in range(3)]
            period = env.clock.control_period
            adapter = make_adapter(model.spec, channels_of(env), control_period=period)
            context = CASE.context(env, model.spec)
            actions = CASE.actions(env)[:30]
            clips = drive_together(models, adapter, actions, context, seeds=[1, 2, 3])
        assert [len(c) for c in clips] == [13, 13, 13]
        assert all(np.array_equal(c.frames[5], context.frames[-1]) for c in clips)
        for m in [model, *models]:
            m.close()
    finally:
        server.terminate()
        server.wait(60)
