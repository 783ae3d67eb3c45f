"""Sets of clips by Blender: a Blender that dies costs one try; what it does not tell is said."""

from __future__ import annotations

import json
import os
import signal

import pytest
from blender_here import needs_bpy

import wmeval
from wmeval.datasets.validate import validate
from wmeval.generators.rigidbench import generate_rigidbench
from wmeval.sim.blender_worker import BlenderWorker

pytestmark = pytest.mark.gl


def killing(monkeypatch, verb, count):
    """Let Blender die as it is asked for the count-th ``verb``; returns the list of the dead."""
    call, asked, dead = BlenderWorker.call, [], []

    def deadly(self, what, header, buffers):
        asked.extend([what] * (what == verb))
        if len(asked) == count and not dead:
            dead.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)
        return call(self, what, header, buffers)

    monkeypatch.setattr(BlenderWorker, "call", deadly)
    return dead


@needs_bpy
def test_physics_by_a_blender_that_dies_are_made_again(tmp_path, monkeypatch):
    made = {}
    for name in ("whole", "killed"):
        with monkeypatch.context() as patched:
            dead = killing(patched, "advance", 3) if name == "killed" else []
            set_ = generate_rigidbench(
                out=tmp_path / name, physics="blender", limit=1, width=96, height=64, workers=0
            )
        assert (set_.made, set_.failed) == ((0,), {})
        assert len(dead) == (name == "killed")
        assert not list((tmp_path / name).glob("failed/*"))
        made[name] = wmeval.open(tmp_path / name)[0]
    assert made["whole"].rollout.sha256() == made["killed"].rollout.sha256()
    metadata = made["killed"].rollout.metadata
    assert metadata["contacts"] == "not told by engine blender"
    assert len(made["killed"].contacts) == 0
    assert validate(tmp_path / "killed") == []


@needs_bpy
def test_pictures_by_a_blender_that_dies_are_made_again(tmp_path, monkeypatch):
    dead = killing(monkeypatch, "draw", 2)
    made = generate_rigidbench(
        out=tmp_path / "set", format="bundle", renderer="cycles", physics="blender", limit=1,
        width=32, height=18, workers=0,
    )  # fmt: skip
    assert (made.made, made.failed, len(dead)) == ((0,), {}, 1)
    (path,) = (tmp_path / "set").rglob("metadata.json")
    document = json.loads(path.read_text())
    assert document["made_by"]["renderer"] == "cycles"
    assert document["made_by"]["renderer_about"]["preset"]["samples"] == 8
    assert document["conventions"]["contacts.json"] == "empty: not told by engine blender"
