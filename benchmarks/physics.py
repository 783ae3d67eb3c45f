"""Steps per second of a world against a bare PyBullet loop of the same scene, in one run.

The bare loop is what somebody would write by hand for BeamDomino and no more: the push, the speed
cap and the release rule, contact queries for the ball and the three legs only, no state kept.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import pybullet as p

import wmeval  # noqa: F401 - registers the environments
from wmeval.sim.engines.bullet import BulletEngine
from wmeval.sim.protocol import Probe, WorldSpec
from wmeval.sim.world import LocalWorld, WorkerWorld

SECONDS = 8
PUSHED = 3
REPEATS = 5


def beam_domino_spec() -> WorldSpec:
    """The environment's own canonical scene."""
    import gymnasium as gym

    env = gym.make("WMEval/BeamDomino-v0")
    env.reset(seed=0, options={"x0": 0.0})
    spec: WorldSpec = env.unwrapped.world_spec  # type: ignore[attr-defined]
    env.close()
    return spec


class BareLoop:
    """The scene in a PyBullet client, stepped by hand."""

    def __init__(self, spec: WorldSpec) -> None:
        params = {d.kind: d.params for d in spec.drivers}
        # Built by the engine, so that both loops step the very same client settings.
        self.engine = BulletEngine()
        self.engine.build(spec.scene, spec.meshes, spec.config, spec.clock.dt, ())
        self.client = self.engine._client
        number = {b.name: self.engine._ids[i] for i, b in enumerate(spec.scene.bodies)}
        mass = {b.name: b.mass for b in spec.scene.bodies}
        release: Any = params["release"]
        self.ball = number[release["striker"]]
        self.ball_mass = mass[release["striker"]]
        self.legs = [number[n] for n in release["struck"]]
        self.freed = [(number[n], mass[n]) for n in release["released"]]
        self.threshold = release["impulse"]
        force: Any = params["force"]
        self.push, self.cap = force["newtons"], force["max_speed"]

    def run(self, substeps: int, pushed: int) -> None:
        """Step."""
        c, ball, threshold, m = self.client, self.ball, self.threshold, self.ball_mass
        held = True
        for k in range(substeps):
            if held or k < pushed:
                position, orientation = p.getBasePositionAndOrientation(ball, c)
                linear, angular = p.getBaseVelocity(ball, c)
                if k < pushed and linear[0] ** 2 + linear[1] ** 2 < self.cap**2:
                    p.applyExternalForce(ball, -1, (0, self.push, 0), position, p.WORLD_FRAME, c)
            p.stepSimulation(c)
            if held:
                for leg in self.legs:
                    for q in p.getContactPoints(ball, leg, physicsClientId=c):
                        n = q[7]
                        v = linear[0] * n[0] + linear[1] * n[1] + linear[2] * n[2]
                        if held and q[9] > 0 and -m * v > threshold:
                            held = False
                            for body, mass in self.freed:
                                p.changeDynamics(body, -1, mass=mass, physicsClientId=c)
                                p.resetBaseVelocity(body, (0, 0, 0), (0, 0, 0), c)
                            p.resetBasePositionAndOrientation(ball, position, orientation, c)
                            p.resetBaseVelocity(ball, linear, angular, c)

    def state(self) -> list[tuple[float, ...]]:
        """Positions of all bodies."""
        return [
            p.getBasePositionAndOrientation(i, self.client)[0]
            for i in self.engine._ids
            if i is not None
        ]


def actions(spec: WorldSpec) -> list[tuple[float, ...]]:
    """Full push for a while, then none."""
    count = int(SECONDS / spec.clock.control_period)
    pushed = int(PUSHED / spec.clock.control_period)
    return [(1.0 if i < pushed else 0.0, 0.0) for i in range(count)]


def cpu_seconds_bare(spec: WorldSpec) -> tuple[float, list[tuple[float, ...]]]:
    """CPU seconds of the bare loop, and where everything ended."""
    loop = BareLoop(spec)
    began = time.process_time()
    loop.run(int(SECONDS / spec.clock.dt), int(PUSHED / spec.clock.dt))
    spent = time.process_time() - began
    ended = loop.state()
    loop.engine.close()
    return spent, ended


def cpu_seconds_world(
    spec: WorldSpec, probe: Probe | None, *, events: bool = False
) -> tuple[float, list[tuple[float, ...]]]:
    """CPU seconds of `LocalWorld.advance` (None: `run`), and where everything ended."""
    world = LocalWorld(spec, events=events)
    world.reset()
    per, todo = spec.clock.substeps, actions(spec)
    began = time.process_time()
    for i, action in enumerate(todo):
        if probe is None:
            world.run(action, (i + 1) * per)
        else:
            log = world.advance(action, (i + 1) * per, probe)
    spent = time.process_time() - began
    log = world.log() if probe is None else log
    world.close()
    moved = [
        tuple(x)
        for x, body in zip(log.state.position[-1].tolist(), spec.scene.bodies, strict=True)
        if body.collision
    ]
    return spent, moved


def fork_milliseconds(spec: WorldSpec) -> dict[str, float]:
    """Wall milliseconds per continuation of a state a second into the episode."""
    world = WorkerWorld(spec)
    world.reset()
    for i, action in enumerate(actions(spec)[:60]):
        world.advance(action, (i + 1) * spec.clock.substeps, Probe())
    result = {}
    for n in (1, 8):
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            forks = world.fork(n)
            times.append((time.perf_counter() - began) / n)
            for fork in forks:
                fork.close()
        result[f"fork_{n}_ms_each"] = round(statistics.median(times) * 1e3, 2)
    world.close()
    return result


def measure() -> dict[str, Any]:
    """Ratios of CPU time per step (1 is as fast as the bare loop), medians of interleaved runs."""
    spec = beam_domino_spec()
    kinds: dict[str, tuple[Probe | None, bool]] = {
        "run": (None, False),
        "last": (Probe(), False),
        "substeps": (Probe("substeps"), False),
        "substeps_contacts": (Probe("substeps", contacts=True), False),
        "last_events": (Probe(), True),
    }
    bare: list[float] = []
    spent: dict[str, list[float]] = {k: [] for k in kinds}
    for _ in range(REPEATS):
        seconds, ended = cpu_seconds_bare(spec)
        bare.append(seconds)
        for name, (probe, events) in kinds.items():
            seconds, moved = cpu_seconds_world(spec, probe, events=events)
            spent[name].append(seconds)
            if moved != ended:
                raise RuntimeError("the bare loop and the world did not step the same physics")
    substeps = int(SECONDS / spec.clock.dt)
    base = statistics.median(bare)
    return {
        "scene": "BeamDomino, canonical, 8 s",
        "bare_substeps_per_cpu_s": round(substeps / base),
        **{
            f"world_{name}_of_bare": round(
                statistics.median(b / s for b, s in zip(bare, times, strict=True)), 3
            )
            for name, times in spent.items()
        },
        **fork_milliseconds(spec),
    }
