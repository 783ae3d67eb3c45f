"""Isaac Sim: a program of its own, which is given whole jobs (`wmeval.sim.engines.job`).

It runs under Isaac Sim's own Python (option ``python``, or WMEVAL_ISAAC_PYTHON in the environment:
its ``python.sh``), by the script ``isaac_worker.py``, which needs nothing of this package. What
drivers lead is tabulated beforehand (`wmeval.sim.engines.foreseen`), the job runs from its first
substep to its last, and what the world then "advances" to are the states that came back. So it
serves what is known beforehand, sweeps above all, and no agent's steps: those it refuses.

Not engine ``physx``: that is SAPIEN's PhysX on the CPU, without deformables; this is Omni PhysX
with surface deformables (textiles, by GAUGE's eqs. 4-7) and FEM volumes, which need an NVIDIA GPU.

Friction and restitution of a pair are products, as everywhere here: PhysX has that rule. Cloth has
no damping of its own: ``damping`` of a `Cloth` or `Soft` is not handed over. Ropes are chains of
links. No contacts are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_mapping import IsaacTextile, isaac_textile
from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.records import CameraLog, Contacts, LightLog, StateLog, WorldLog
from wmeval.scene import DYNAMIC, KINEMATIC, Body, Box, Cloth, Mesh, Meshes, Scene, Soft, Sphere
from wmeval.sim.engines.bullet_shapes import centred_inertia
from wmeval.sim.engines.engine_options import info_of, options_of
from wmeval.sim.engines.foreseen import Foreseen, Foreseer, Stretch, merged
from wmeval.sim.engines.job import Answer, Asked, run_job
from wmeval.sim.engines.pins import pinned_vertices
from wmeval.sim.protocol import Driver, EngineConfig, Probe, StateView
from wmeval.sim.rows import LastRow
from wmeval.sim.stage import Stage

SIMULATOR = "Isaac Sim"
WORKER = Path(__file__).with_name("isaac_worker.py")
OPTIONS = {
    # option: (default, least, greatest); -1: PhysX' own default stays
    "velocity_iterations": (-1.0, -1.0, 255.0),
    "max_depenetration_velocity": (-1.0, -1.0, 1e6),
    "contact_offset": (-1.0, -1.0, 0.1),
    "rest_offset": (-1.0, -1.0, 0.1),
    "settling_damping": (-1.0, -1.0, 1e6),
    "settling_threshold": (-1.0, -1.0, 1e6),
    "sleep_threshold": (-1.0, -1.0, 1e6),
    "elasticity_damping": (-1.0, -1.0, 1e6),
    "bend_damping": (-1.0, -1.0, 1e6),
}
CHOICES = {"solver": ("TGS", "PGS")}
LIMIT = 3600.0
"""Time-out of a job where none is given [s]."""
MAX_ITERATIONS = 255
_CONTACTS = Contacts.empty()


def textile(item: Cloth) -> IsaacTextile:
    """A cloth's numbers by GAUGE's mapping."""
    return isaac_textile(
        stretch=item.stretch, shear=item.shear, hinge=max(item.bending, 1e-12),
        thickness=item.thickness,
    )  # fmt: skip


class IsaacEngine(Stage):
    """Rigid bodies, cloth and solids by Isaac Sim, a job at a time."""

    def __init__(self) -> None:
        super().__init__()
        kinds = ("rigid", "joint", "cloth", "soft")
        self.info = replace(
            info_of("isaac", kinds, deterministic=False, impulses=False),
            stepped=False,
        )
        self._stretches: tuple[Stretch, ...] = ()
        self._every = False
        self._limit = LIMIT
        self._log: WorldLog | None = None
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer | None:
        """The last answer's version, times and settings."""
        return self._answer

    def foresee(
        self, stretches: Sequence[Stretch], *, every: bool = False, limit: float | None = None
    ) -> None:
        """Say, before `build`, what will be asked for.

        Args:
            stretches: actions, each with the state up to which it is in force.
            every: all states are wanted, not only those at the ends of stretches.
            limit: time-out of the job [s].
        """
        self._stretches = tuple((tuple(a), int(until)) for a, until in stretches)
        self._every = every
        self._limit = LIMIT if limit is None else limit

    def build(
        self,
        scene: Scene,
        meshes: Meshes,
        config: EngineConfig,
        dt: Fraction,
        drivers: Sequence[Driver],
    ) -> None:
        """Note what the job is made of; it runs when state 0 is asked for.

        Raises:
            UserError: an unknown option, a driver that needs physics, or Isaac Sim is not there.
        """
        self._set_stage(scene, dt)
        self._numbers, self._words = options_of(
            "isaac", OPTIONS, config, CHOICES, iterations=MAX_ITERATIONS
        )
        self._meshes, self._config, self._drivers = meshes, config, tuple(drivers)
        self._settle = 0
        self._log = self._answer = None
        for body in scene.bodies:
            if body.rolling_friction or body.upright:
                raise UserError(
                    f"body {body.name!r}: engine isaac has no rolling_friction and no upright: run "
                    "it with bullet"
                )

    # --- the job ----------------------------------------------------------------------------------

    def _run(self) -> WorldLog:
        if self._log is not None:
            return self._log
        if not self._stretches:
            raise UserError(
                "engine isaac runs whole jobs, not single steps: run it by `wmeval sweep`, or say "
                "what will be asked for by World.foresee before the world is reset; step an "
                "environment on bullet"
            )
        named = self._config.options.get("python", "")
        python = installed.interpreter("isaac", str(named))
        scene, meshes = self._scene, self._meshes
        last = self._stretches[-1][1]
        ends = {0, *(until for _, until in self._stretches)}
        wanted = tuple(range(last + 1)) if self._every else tuple(sorted(ends))
        foreseer = Foreseer("isaac", scene, meshes, self._dt, self._drivers, self._settle)
        known = foreseer.foresee(self._stretches, wanted)
        header, arrays = self._job(known, wanted, last)
        start = known.log.state
        asked = Asked(
            SIMULATOR, "", wanted, len(scene.bodies),
            {d.name: len(rest_shape(d, meshes).vertices) for d in scene.deformables},
            None if self._settle else np.concatenate(
                [start.position[0], start.quaternion_wxyz[0]], axis=1),
            (known.led, known.poses[np.array(wanted) + self._settle]),
        )  # fmt: skip
        self._answer = run_job(SIMULATOR, python, WORKER, header, arrays, asked, limit=self._limit)
        self._log = merged(known, self._answer.arrays, scene)
        return self._log

    def _job(
        self, known: Foreseen, wanted: tuple[int, ...], last: int
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        scene = self._scene
        arrays: dict[str, NDArray[Any]] = {
            "states": np.array(wanted, np.int64),
            "led": known.poses,
        }
        still = {k: v for k, v in self._numbers.items() if v >= 0}
        header: dict[str, Any] = {
            "simulator": SIMULATOR,
            "scene": scene.name,
            "dt": str(self._dt),
            "gravity": list(scene.gravity),
            "settle": self._settle,
            "last": last,
            "solver": {
                "iterations": self._config.iterations,
                "restitution_threshold": self._config.restitution_threshold,
                **self._words, **still,
            },
            "bodies": [self._body(i, b, arrays) for i, b in enumerate(scene.bodies)],
            "led": list(known.led),
            "joints": [j.model_dump(mode="json") for j in scene.joints],
            "deformables": [self._deformable(d, arrays) for d in scene.deformables],
            "kick": {
                "velocities": {str(i): list(v) for i, v in known.velocities.items()},
                "damped": list(known.damped),
                "keep": known.keep,
            },
        }  # fmt: skip
        return header, arrays

    def _body(self, i: int, body: Body, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        moved = self._motion[i] == DYNAMIC and body.active and body.collision
        inertia = np.zeros((3, 3))
        if moved:
            inertia = centred_inertia(body, self._meshes)
        what = "dynamic" if moved else "led" if self._motion[i] == KINEMATIC else "still"
        parts = body.collision if body.active else ()
        return {
            "name": body.name, "motion": what, "mass": body.mass, "inertia": inertia.tolist(),
            "friction": body.friction, "restitution": body.restitution,
            "linear_damping": body.linear_damping, "angular_damping": body.angular_damping,
            "position": list(body.position), "quaternion_wxyz": list(body.quaternion_wxyz),
            "linear_velocity": list(body.linear_velocity),
            "angular_velocity": list(body.angular_velocity),
            "shapes": [
                {
                    **self._shape(p.shape, arrays),
                    "position": list(p.position), "quaternion_wxyz": list(p.quaternion_wxyz),
                }
                for p in parts
            ],
        }  # fmt: skip

    def _shape(self, shape: Any, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        if isinstance(shape, Sphere):
            return {"kind": "sphere", "radius": shape.radius}
        if isinstance(shape, Box):
            return {"kind": "box", "half_extents": list(shape.half_extents)}
        if isinstance(shape, Mesh):
            if shape.sha256 not in self._meshes:
                raise UserError(f"mesh {shape.sha256[:12]}... is not among the meshes")
            key = f"mesh/{shape.sha256[:16]}"
            mesh = self._meshes[shape.sha256]
            arrays[f"{key}/vertices"] = np.array(mesh.vertices, np.float64)
            arrays[f"{key}/triangles"] = np.array(mesh.triangles, np.int64)
            return {"kind": "mesh", "mesh": key, "convex": shape.convex}
        return {"kind": shape.kind, "radius": shape.radius, "height": shape.height}

    def _deformable(self, item: Any, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        rest = rest_shape(item, self._meshes)
        key = f"rest/{item.name}"
        arrays[f"{key}/vertices"] = rest.vertices
        arrays[f"{key}/triangles"] = rest.triangles.astype(np.int64)
        pins = []
        for k, pin in enumerate(pinned_vertices(self._scene, item, rest.vertices)):
            arrays[f"{key}/pin/{k}/vertices"] = pin.vertices.astype(np.int64)
            arrays[f"{key}/pin/{k}/places"] = pin.local
            pins.append(-1 if pin.body is None else pin.body)
        common = {
            "name": item.name, "kind": item.kind, "friction": item.friction, "pins": pins,
            "linear_velocity": list(item.linear_velocity),
        }  # fmt: skip
        if isinstance(item, Cloth):
            chosen = textile(item)
            return {
                **common, "density": item.areal_density / item.thickness,
                "thickness": item.thickness, "young": chosen.young,
                "poisson": chosen.poisson.value, "bend": chosen.surface_bend_stiffness,
                "self_contact": item.self_contact,
            }  # fmt: skip
        assert isinstance(item, Soft)
        arrays[f"{key}/tetrahedra"] = rest.tetrahedra.astype(np.int64)
        return {
            **common, "density": item.density, "young": item.youngs_modulus,
            "poisson": item.poisson_ratio, "self_contact": False,
        }  # fmt: skip

    # --- what came back ---------------------------------------------------------------------------

    def log(self, probe: Probe) -> tuple[StateLog, CameraLog, LightLog]:
        """The present state as one row; the job runs if it has not.

        Raises:
            UserError: nothing was foreseen, or Isaac Sim is not installed.
            WorkerError: it failed.
        """
        return self._rows_between(self.substep, self.substep)

    def advance(
        self, action: Sequence[float], until: int, probe: Probe
    ) -> tuple[StateLog, CameraLog, LightLog, Contacts]:
        """Go on to a state that was foreseen; rows as the probe asks.

        Raises:
            UserError: another state or action than was foreseen.
        """
        self._check_ahead(until)
        known = [a for a, end in self._stretches if end == until]
        if self._log is not None and (not known or known[0] != tuple(action)):
            raise UserError(
                f"engine isaac ran a whole job that did not foresee state {until} under this "
                "action: run it by `wmeval sweep`, or step an environment on bullet"
            )
        first = self.substep + 1 if probe.states == "substeps" else until
        self.substep = until
        self.action = tuple(action)
        return (*self._rows_between(first, until), _CONTACTS)

    def _rows_between(self, first: int, last: int) -> tuple[StateLog, CameraLog, LightLog]:
        log = self._run()
        k = np.flatnonzero((log.state.substep >= first) & (log.state.substep <= last))
        if len(k) != last - first + 1:
            raise UserError(
                f"engine isaac was asked for states {first} to {last}, of which its job kept "
                f"{len(k)}: foresee every state"
            )
        part = log.rows(slice(int(k[0]), int(k[-1]) + 1))
        return part.state, part.cameras, part.lights

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Go on as `advance` does; before state 0: let the job settle.

        Raises:
            UserError: as `advance`.
        """
        if self.substep < 0:
            self._settle, self.substep = -self.substep, until
            return self  # type: ignore[return-value]
        return LastRow(WorldLog(*self.advance(action, until, Probe())))

    def close(self) -> None:
        """Forget the answer; idempotent."""
        self._log = self._answer = None


__all__ = ["CHOICES", "OPTIONS", "SIMULATOR", "IsaacEngine"]
