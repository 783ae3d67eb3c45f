"""Isaac Sim by jobs: what is sent, what is believed of what comes back, what is refused."""

import dataclasses
import os
import re
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from fake_isaac import write_launcher
from physics_scenes import body, floor, world_spec

from wmeval.assets.gauge_cards import families
from wmeval.clock import SceneClock
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.build import build
from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.jobs.worker import WorkerError
from wmeval.scene import Box, Sphere
from wmeval.sim.engines import engine_info
from wmeval.sim.engines.isaac import WORKER
from wmeval.sim.engines.job import read_members, write_job
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, Probe, WorldSpec
from wmeval.sim.world import open_world

DT = Fraction(1, 180)
LED = DriverSpec(
    kind="imposed",
    params={
        "body": "plate",
        "samples": [[0, 0, 0, 0, 0], [0.1, 0.02, 0, 0, 0.3], [1.0, 0.02, 0, 0, 0.3]],
    },
)


@pytest.fixture
def launcher(tmp_path, monkeypatch):
    monkeypatch.delenv("WMEVAL_ISAAC_PYTHON", raising=False)
    monkeypatch.delenv("FAKE_ISAAC", raising=False)
    return write_launcher(tmp_path)


def spec_of(python, *drivers, bodies=(), settle=0, **options):
    ball = body("ball", Sphere(radius=0.1), mass=0.5, position=(0.3, 0, 2.0), friction=0.4,
                linear_velocity=(1.0, 0, 0))  # fmt: skip
    plate = body("plate", Box(half_extents=(0.2, 0.2, 0.01)), motion="kinematic",
                 position=(0, 0, 0.5))  # fmt: skip
    spec = world_spec(ball, plate, floor(), *bodies)
    config = EngineConfig(options={"python": python, **options})
    return dataclasses.replace(
        spec, engine="isaac", config=config, drivers=drivers, settle=settle,
        clock=SceneClock(DT, 6 * DT),
    )  # fmt: skip


def play(spec, *ends, every=False, limit=60.0):
    world = open_world(spec)
    world.foresee([((), end) for end in ends], every=every, limit=limit)
    rows = [world.reset()]
    rows += [world.advance((), end, Probe("substeps" if every else "last")) for end in ends]
    return world, rows


# --- what is believed -----------------------------------------------------------------------------


def test_states_come_back_as_a_stepped_engine_s_would(launcher):
    world, rows = play(spec_of(launcher, LED), 6, 12, 18)
    assert [r.state.substep.tolist() for r in rows] == [[0], [6], [12], [18]]
    t = np.array([0, 6, 12, 18]) / 180
    ball = np.concatenate([r.state.position[:, 0] for r in rows])
    assert ball[:, 2] == pytest.approx(2.0 - 9.81 * t**2 / 2)
    assert ball[:, 0] == pytest.approx(0.3 + t)
    # What is led is where bullet has it, with its velocity.
    twin = open_world(dataclasses.replace(spec_of("", LED), engine="bullet", config=EngineConfig()))
    twin.reset()
    other = twin.advance((), 18, Probe("last")).state
    assert rows[-1].state.position[0, 1] == pytest.approx(other.position[0, 1], abs=1e-12)
    assert rows[-1].state.quaternion_wxyz[0, 1] == pytest.approx(other.quaternion_wxyz[0, 1])
    assert rows[1].state.linear_velocity[0, 1, 0] == pytest.approx(0.2)
    assert world.seconds() == (2.0, 0.5)
    assert rows[-1].cameras.names == tuple(c.name for c in world.spec.scene.cameras)
    with pytest.raises(UserError, match="did not foresee state 24"):
        world.advance((), 24, Probe("last"))
    world.close()
    twin.close()


def test_every_state_comes_in_one_stretch(launcher):
    world, (first, rest) = play(spec_of(launcher, LED), 30, every=True)
    assert len(first.state) == 1
    assert rest.state.substep.tolist() == list(range(1, 31))
    world.close()


@pytest.mark.parametrize(
    ("how", "kind", "match"),
    [
        ("raise", "error", r"ended with code 3 without an answer: JobError: no GPU is there$"),
        ("silent", "error", "ended with code 1 without an answer, and said nothing$"),
        ("kill", "crash", "was killed by SIGSEGV without an answer: .kit. loading"),
        ("half", "protocol", "states: it is no whole file"),
        ("shape", "protocol", r"position has the shape \(3, 1, 3\), not \(3, 3, 3\)"),
        ("lacks", "protocol", "it lacks angular_velocity"),
        ("extra", "protocol", "it holds temperature, which nobody asked for"),
        ("text", "protocol", "position has the type <U8"),
        ("centimetres", "protocol", r"body 0 is not where the scene begins \(200 m"),
        ("units", "protocol", "its units are .*'cm'"),
        ("xyzw", "protocol", r"body 0 is not where the scene begins \(0 m and 3.14 rad off\)"),
        ("long quaternions", "protocol", "whose length is not 1"),
        ("times", "protocol", "its states are not the ones asked for"),
        ("not led", "protocol", "body 1, which is led, is elsewhere in row 2 .0.173 m"),
        ("other simulator", "protocol", "'SAPIEN'.*, not of Isaac Sim"),
        ("another job", "protocol", "it answers another job"),
        ("altered", "protocol", "its checksum does not fit its numbers"),
        ("seconds", "protocol", "build and run are wanted"),
    ],
)
def test_a_wrong_answer_is_told_in_one_line(launcher, monkeypatch, how, kind, match):
    monkeypatch.setenv("FAKE_ISAAC", how)
    with pytest.raises(WorkerError) as caught:
        play(spec_of(launcher, LED), 6, 12)
    assert caught.value.kind == kind
    assert re.search(match, caught.value.what)
    assert "\n" not in caught.value.what


def test_a_simulator_that_hangs_is_ended_with_all_that_it_started(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC", "hang")
    began = time.monotonic()
    with pytest.raises(WorkerError, match=r"no answer within 1.5 s") as caught:
        play(spec_of(launcher, LED), 6, limit=1.5)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 20


def test_numbers_that_blew_up_are_no_broken_file(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC", "nan")
    world, rows = play(spec_of(launcher, LED), 6, 12, 18)
    assert np.isfinite(rows[1].state.position).all()
    assert np.isnan(rows[3].state.position[0, 0]).all()
    world.close()


def test_a_simulator_that_dies_as_it_closes_has_answered(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC", "dies when done")
    world, rows = play(spec_of(launcher, LED), 6)
    assert rows[1].state.substep.tolist() == [6]
    world.close()


# --- what is sent ---------------------------------------------------------------------------------


def test_a_job_says_all_that_a_worker_needs(launcher, tmp_path, monkeypatch):
    """Of a set-up of GAUGE: led rod, pinned sheet, the published mapping of its stiffness."""
    monkeypatch.setenv("FAKE_ISAAC_KEEP", str(tmp_path / "job.npz"))
    made = build(families()["textile_bending"], "1", "rayon")
    config = EngineConfig(iterations=16, options={"python": launcher})
    spec = WorldSpec(
        made.scene, made.meshes, made.drives.specs, SceneClock(DT, 6 * DT), EventRules(), "isaac",
        config,
    )  # fmt: skip
    world, _ = play(spec, 6, 12)
    world.close()
    header, arrays = read_members(tmp_path / "job.npz")
    assert (header["format"], header["dt"], header["last"]) == ("wmeval-job/1", "1/180", 12)
    assert header["units"] == {"length": "m", "mass": "kg", "time": "s", "angle": "rad"}
    (sheet,) = header["deformables"]
    item = made.scene.deformables[0]
    assert sheet["young"] == pytest.approx(item.stretch / item.thickness)
    assert sheet["bend"] == pytest.approx(item.bending / (4 * item.thickness**3))
    assert sheet["density"] * item.thickness == pytest.approx(item.areal_density)
    # K_s / 2 K_sh - 1 of rayon is negative: eq. 6 falls back.
    assert sheet["poisson"] == 0.30
    rest = rest_shape(item, made.meshes)
    assert np.array_equal(arrays[f"rest/{item.name}/vertices"], rest.vertices)
    pinned = sum(len(arrays[f"rest/{item.name}/pin/{k}/vertices"]) for k in range(2))
    assert pinned == sum(len(p.vertices) for p in item.pins)
    names = [b["name"] for b in header["bodies"]]
    for k, target in enumerate(sheet["pins"]):
        assert names[target] == item.pins[k].body
        places = arrays[f"rest/{item.name}/pin/{k}/places"]
        at = np.array(header["bodies"][target]["position"])
        assert at + places == pytest.approx(rest.vertices[list(item.pins[k].vertices)])
    led = arrays["led"]
    assert led.shape == (13, len(header["led"]), 7)
    moved = np.abs(led[-1] - led[0]).max(axis=1)
    assert [names[i] for i, m in zip(header["led"], moved, strict=True) if m > 0] == [
        s.params["body"] for s in made.drives.specs
    ]


def test_a_kick_after_settling_is_the_worker_s_to_give(launcher, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC_KEEP", str(tmp_path / "job.npz"))
    kick = DriverSpec(kind="kick", params={"velocities": {"ball": [0, 2.0, 0]},
                                           "damped": ["ball"], "damping": 0.5})  # fmt: skip
    world, rows = play(spec_of(launcher, LED, kick, settle=90), 6)
    header, arrays = read_members(tmp_path / "job.npz")
    assert header["settle"] == 90
    assert header["kick"]["velocities"] == {"0": [0, 2.0, 0]}
    assert header["kick"]["damped"] == [0]
    assert header["kick"]["keep"] ** 180 == pytest.approx(0.5)
    assert len(arrays["led"]) == 90 + 6 + 1
    # Before time 0 what is led is at rest.
    assert np.ptp(arrays["led"][:91], axis=0).max() == 0
    assert rows[0].state.linear_velocity[0, 0, 1] == 2.0
    assert rows[1].state.substep.tolist() == [6]
    world.close()


# --- what is refused ------------------------------------------------------------------------------


def test_what_is_not_known_beforehand_is_refused_in_one_line(launcher):
    world = open_world(spec_of(launcher, LED))
    with pytest.raises(UserError, match=r"runs whole jobs, not single steps.*bullet"):
        world.reset()
    push = DriverSpec(kind="force", params={"body": "ball", "axes": [[1, 0, 0]], "newtons": 3.0})
    pushed = open_world(spec_of(launcher, push))
    pushed.foresee([((1.0,), 6)])
    with pytest.raises(UserError, match="reads the velocity of the dynamic body 'ball'"):
        pushed.reset()
    with pytest.raises(UserError, match="isaac has no option 'colour'"):
        play(spec_of(launcher, LED, colour=1), 6)
    moving = body("belt", Box(half_extents=(0.1,) * 3), motion="kinematic", position=(1, 1, 1),
                  linear_velocity=(1, 0, 0))  # fmt: skip
    with pytest.raises(UserError, match="'belt' moves by a velocity of its own"):
        play(spec_of(launcher, LED, bodies=(moving,)), 6)
    with pytest.raises(UserError, match=r"cannot run 'nowhere/python.sh'"):
        play(spec_of("nowhere/python.sh", LED), 6)


def test_isaac_says_what_it_is_and_is_not_physx(launcher, monkeypatch):
    info = engine_info("isaac")
    assert not info.stepped
    assert not info.deterministic
    assert {"rigid", "joint", "cloth", "soft"} == set(info.body_kinds)
    assert info.version == "not installed"
    assert "WMEVAL_ISAAC_PYTHON" in info.mend
    with pytest.raises(UserError, match="isaacsim is not installed: install Isaac Sim"):
        installed.interpreter("isaac")
    with pytest.raises(UserError, match="isaac cannot be installed from here: install Isaac Sim"):
        installed.install("isaac")
    monkeypatch.setenv("WMEVAL_ISAAC_PYTHON", launcher)
    assert installed.version("isaac") == "6.0.0-rc.59+fake.1234"
    assert engine_info("isaac").version == "6.0.0-rc.59+fake.1234"
    assert engine_info("isaac").mend == ""
    assert engine_info("physx").version != engine_info("isaac").version


def test_its_script_runs_beside_files_that_bear_the_names_of_simulators(tmp_path):
    """Where Isaac Sim is not: it says so in its last line, and imports nothing from its folder."""
    write_job(tmp_path / "job.npz", {"simulator": "Isaac Sim"}, {"x": np.zeros(3)})
    done = subprocess.run(
        [sys.executable, str(WORKER), str(tmp_path / "job.npz"), str(tmp_path / "out.npz")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "wmeval: ModuleNotFoundError: No module named 'isaacsim'"
    )
    assert os.listdir(tmp_path) == ["job.npz"]
