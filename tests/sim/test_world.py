"""Worlds: local and in a worker, forked and replayed, to the bit."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from physics_scenes import beam_domino, body, drive, world_spec

from wmeval.errors import UserError
from wmeval.jobs.worker import WorkerError
from wmeval.records import Contacts, WorldLog
from wmeval.scene import Mesh, MeshData, Sphere
from wmeval.sim.protocol import DriverSpec, Probe
from wmeval.sim.wire import pack_log, pack_spec, unpack_log, unpack_spec
from wmeval.sim.world import LocalWorld, WorkerWorld, open_world

EVERY = Probe(states="substeps", contacts=True)


def same(a: WorldLog, b: WorldLog) -> bool:
    contacts = all(
        np.array_equal(getattr(a.contacts, f.name), getattr(b.contacts, f.name))
        for f in dataclasses.fields(Contacts)
    )
    return (
        contacts
        and a.state.sha256() == b.state.sha256()
        and a.events == b.events
        and np.array_equal(a.cameras.T_world_camera, b.cameras.T_world_camera)
        and np.array_equal(a.cameras.fov_y, b.cameras.fov_y)
        and np.array_equal(a.lights.sun_direction, b.lights.sun_direction)
        and np.array_equal(a.lights.sun_color, b.lights.sun_color)
        and np.array_equal(a.lights.sky, b.lights.sky)
    )


def go(world, first, last, push=1.0) -> WorldLog:
    """Control periods first .. last - 1."""
    return WorldLog.concatenate(
        [world.advance((push, 0.0), 4 * (i + 1), EVERY) for i in range(first, last)]
    )


def test_a_worker_world_equals_the_local_one():
    spec = beam_domino(0.0)
    local = WorldLog.concatenate(drive(LocalWorld(spec, events=True), seconds=2.5))
    world = WorkerWorld(spec, events=True)
    assert same(WorldLog.concatenate(drive(world, seconds=2.5)), local)
    assert world.substep == 600
    assert len(local.events) > 3
    # Again from state 0.
    assert same(WorldLog.concatenate(drive(world, seconds=0.5)), local_part(local, 0.5))
    world.close()


def local_part(log: WorldLog, seconds: float) -> WorldLog:
    rows = round(seconds * 240) + 1
    c = log.contacts
    keep = c.substep < rows - 1
    part = log.rows(slice(0, rows))
    return dataclasses.replace(
        part,
        contacts=Contacts(*(getattr(c, f.name)[keep] for f in dataclasses.fields(Contacts))),
        events=tuple(e for e in log.events if e.detected_at <= seconds),
    )


def test_forks_continue_to_the_bit_as_a_replay_does():
    spec = beam_domino(0.0)
    world = open_world(spec, events=True, branching=True)
    world.reset()
    go(world, 0, 88)  # just before the impact at 1.5 s
    forks = world.fork(3)
    assert all(f.substep == 352 for f in forks)
    pushes = (1.0, 0.0, -1.0)
    branches = [go(f, 88, 140, push) for f, push in zip(forks, pushes, strict=True)]
    assert len({b.state.sha256() for b in branches}) == 3
    for branch, push in zip(branches, pushes, strict=True):
        replay = LocalWorld(spec, events=True)
        replay.reset()
        go(replay, 0, 88)
        assert same(go(replay, 88, 140, push), branch)
    # The world itself was not disturbed, and a fork forks.
    assert same(go(world, 88, 140), branches[0])
    grandchild = forks[2].fork(1)[0]
    world.close()
    assert same(go(grandchild, 140, 150), go(forks[2], 140, 150))
    for fork in (*forks, grandchild):
        fork.close()


def test_a_turning_sun_crosses_the_boundary_and_forks():
    base = beam_domino(0.0)
    spec = dataclasses.replace(base, drivers=(*base.drivers, DriverSpec(kind="sun")))
    world, local = WorkerWorld(spec), LocalWorld(spec)
    first, again = world.reset(), local.reset()
    assert same(first, again)
    before = go(local, 0, 10)
    assert same(go(world, 0, 10), before)
    lights = before.lights
    assert len({tuple(row) for row in lights.sun_direction.tolist()}) == 40
    assert np.abs(np.linalg.norm(lights.sun_direction, axis=1) - 1).max() < 1e-12
    assert len({row.tobytes() for row in lights.sky}) > 20
    fork = world.fork(1)[0]
    after = go(local, 10, 14)
    # Whoever runs and then looks sees what was logged.
    view = fork.run((1.0, 0.0), 56)
    direction, color = view.sun()
    assert list(direction) == after.lights.sun_direction[-1].tolist()
    assert list(color) == after.lights.sun_color[-1].tolist()
    assert view.sky() == tuple(map(tuple, after.lights.sky[-1].tolist()))
    assert view.fov_y(0) == after.cameras.fov_y[-1, 0]
    assert view.active(0) is True
    assert same(go(world, 10, 14), after)
    for each in (world, fork, local):
        each.close()


def test_a_fork_takes_milliseconds():
    world = WorkerWorld(beam_domino(0.0))
    world.reset()
    go(world, 0, 10)
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        forks = world.fork(2)
        times.append((time.perf_counter() - begin) / 2)
        for fork in forks:
            fork.close()
    # A replay of this stretch costs ten times as much. What else the machine does adds to most of
    # the times, but hardly to all.
    assert min(times) < 0.05
    world.close()


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or read
        return False


def wait_until_gone(pids, seconds=100.0):
    end = time.monotonic() + seconds
    while any(alive(p) for p in pids) and time.monotonic() < end:
        time.sleep(0.02)
    return [p for p in pids if alive(p)]


def test_closed_worlds_leave_no_process():
    world = WorkerWorld(beam_domino(0.0))
    world.reset()
    forks = world.fork(3)
    pids = [world.pid, *(f.pid for f in forks)]
    world.close()
    assert all(alive(p) for p in pids[1:])
    go(forks[0], 0, 2)
    for fork in forks:
        fork.close()
    assert wait_until_gone(pids) == []


_OWNER = """
import sys, time
sys.path.insert(0, {here!r})
from physics_scenes import beam_domino
from wmeval.sim.world import WorkerWorld
world = WorkerWorld(beam_domino(0.0))
world.reset()
forks = world.fork(3)
print(world.pid, *(f.pid for f in forks), flush=True)
time.sleep(600)
"""


def test_a_killed_owner_leaves_no_process():
    script = _OWNER.format(here=str(Path(__file__).parent))
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = [int(p) for p in owner.stdout.readline().split()]
    assert len(pids) == 4
    assert all(alive(p) for p in pids)
    owner.kill()
    owner.communicate()
    assert wait_until_gone(pids) == []


def test_a_killed_worker_costs_one_clear_error():
    world = WorkerWorld(beam_domino(0.0))
    world.reset()
    fork = world.fork(1)[0]
    os.kill(world.pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"SIGKILL.*during 'advance'"):
        world.advance((0.0, 0.0), 4, EVERY)
    with pytest.raises(WorkerError, match="is gone"):
        world.reset()
    assert len(fork.advance((0.0, 0.0), 4, EVERY)) == 4
    fork.close()
    world.close()


def test_user_faults_cross_the_boundary_as_user_faults():
    lost = DriverSpec(kind="force", params={"body": "x", "axes": [[1, 0, 0]], "newtons": 1.0})
    ball = body("ball", Sphere(radius=0.2))
    world = WorkerWorld(world_spec(ball, drivers=(lost,)))
    with pytest.raises(UserError, match="no body 'x'; there are ball"):
        world.reset()
    world.close()
    with pytest.raises(UserError, match="no driver 'weather'"):
        WorkerWorld(world_spec(ball, drivers=(DriverSpec(kind="weather"),)))
    local = LocalWorld(world_spec(ball))
    with pytest.raises(UserError, match="branching=True"):
        local.fork(2)
    with pytest.raises(UserError, match="at least one"):
        world.fork(0)


def test_specification_and_log_cross_exactly():
    mesh = MeshData(
        np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], np.float32) / 3,
        np.array([(0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 2, 3)], np.uint32),
        np.zeros((4, 3), np.float32),
        np.zeros((4, 2), np.float32),
    )
    base = beam_domino(0.1 + 0.2)
    key = mesh.content_hash()
    part = body("part", Mesh(sha256=key), motion="static", position=(1 / 3, 0, 0))
    scene = base.scene.model_copy(update={"bodies": (*base.scene.bodies, part)})
    spec = dataclasses.replace(base, scene=scene, meshes={key: mesh})
    back = unpack_spec(*pack_spec(spec))
    assert back.scene == spec.scene
    assert back.scene.content_hash() == spec.scene.content_hash()
    assert {k: m.content_hash() for k, m in back.meshes.items()} == {key: key}
    assert (back.drivers, back.clock, back.rules) == (spec.drivers, spec.clock, spec.rules)
    assert (back.engine, back.config) == (spec.engine, spec.config)
    log = WorldLog.concatenate(drive(LocalWorld(spec, events=True), seconds=0.2))
    assert log.events[0].value != log.events[0].value
    assert same(unpack_log(*pack_log(log)), log)


def test_worlds_whose_engine_knows_states_only_tell_no_mechanics():
    spec = world_spec()
    for open_one in (LocalWorld, WorkerWorld):
        world = open_one(spec)
        world.reset()
        with pytest.raises(UserError, match="engine 'bullet' knows states"):
            world.mechanics(0.0)
        world.close()


def test_worker_worlds_cast_rays():
    world = WorkerWorld(beam_domino(0.0))
    world.reset()
    bodies, points = world.raycast(np.array([[0, -20, 0.5]]), np.array([[0, 20, 0.5]]))
    assert world.spec.scene.bodies[bodies[0]].name == "ball"
    assert np.abs(points[0] - [0, -6.5, 0.5]).max() < 1e-3
    world.close()


@pytest.mark.parametrize("kind", [LocalWorld, WorkerWorld])
def test_running_reaches_the_bits_of_advancing(kind):
    spec = beam_domino(0.0)
    run, advanced = kind(spec), LocalWorld(spec)
    run.reset()
    advanced.reset()
    for i in range(0, 130, 10):  # past the release at 1.5 s
        view = run.run((1.0, 0.0), 4 * (i + 10))
        row = advanced.advance((1.0, 0.0), 4 * (i + 10), Probe())
        state = row.state
        for b in range(len(state.bodies)):
            (position, quaternion), (linear, angular) = view.pose(b), view.velocity(b)
            assert list(position) == state.position[-1, b].tolist()
            assert list(quaternion) == state.quaternion_wxyz[-1, b].tolist()
            assert list(linear) == state.linear_velocity[-1, b].tolist()
            assert list(angular) == state.angular_velocity[-1, b].tolist()
            assert view.motion(b) == state.motion[-1, b]
        for c in range(len(spec.scene.cameras)):
            assert list(view.camera(c)) == row.cameras.T_world_camera[-1, c].ravel().tolist()
        assert same(run.log(), row)
    assert (state.motion[-1] != LocalWorld(spec).reset().state.motion[-1]).any()
    run.close()


def test_a_world_that_looks_for_events_does_not_run():
    world = LocalWorld(beam_domino(0.0), events=True)
    world.reset()
    with pytest.raises(UserError, match="advance"):
        world.run((1.0, 0.0), 4)


def test_a_worker_that_has_grown_too_large_is_not_used_again(monkeypatch):
    world = open_world(beam_domino(0.0), branching=True)
    pid = world.pid
    monkeypatch.setattr("wmeval.sim.world.WORN", 1 << 20)
    new = open_world(beam_domino(0.6), branching=True, instead_of=world)
    assert new.pid != pid
    assert len(new.reset()) == 1
    new.close()


def test_a_worker_is_used_again_and_a_dead_one_replaced():
    first, second = beam_domino(0.0), beam_domino(0.6)
    world = open_world(first, branching=True)
    drive(world, seconds=0.5)
    pid = world.pid
    again = open_world(second, events=True, branching=True, instead_of=world)
    assert again.pid == pid
    assert again.spec is second
    local = WorldLog.concatenate(drive(LocalWorld(second, events=True), seconds=2.0))
    assert same(WorldLog.concatenate(drive(again, seconds=2.0)), local)
    os.kill(pid, signal.SIGKILL)
    new = open_world(first, branching=True, instead_of=again)
    assert new.pid != pid
    assert len(new.reset()) == 1
    new.close()


def test_several_states_in_one_request_are_those_of_one_after_the_other():
    spec = beam_domino(0.0)
    world, local = WorkerWorld(spec), LocalWorld(spec)
    world.reset(), local.reset()
    untils = [4, 8, 15]
    several = world.advance_each((1.0, 0.0), untils, Probe("last"))
    singly = WorldLog.concatenate([local.advance((1.0, 0.0), u, Probe("last")) for u in untils])
    assert same(several, singly)
    assert world.substep == 15
    # In this process one comes at once.
    assert local.advance_each((1.0, 0.0), [16, 18], Probe("last")).state.substep.tolist() == [16]
    assert local.substep == 16
    # What went before a fault is told first, the fault when asked on, and then no more.
    some = world.advance_each((1.0, 0.0), [20, 18, 24], Probe("last"))
    assert some.state.substep.tolist() == [20]
    with pytest.raises(UserError, match="18"):
        world.advance_each((1.0, 0.0), [24], Probe("last"))
    assert world.advance_each((1.0, 0.0), [24], Probe("last")).state.substep.tolist() == [24]
    # A fault that nobody asked for ends with its run.
    world.advance_each((1.0, 0.0), [28, 26], Probe("last"))
    world.reset()
    assert world.advance_each((1.0, 0.0), [4], Probe("last")).state.substep.tolist() == [4]
    world.close(), local.close()
