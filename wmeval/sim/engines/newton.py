"""Newton (on Warp, on the CPU): rigid bodies and joints, cloth, solids of tetrahedra, ropes.

Option ``solver`` says which of its solvers moves a scene:

- "mujoco" (default without deformables): MuJoCo's own CPU build. It has no restitution (about 0);
  ``contact`` "restitution" maps it to the damping of its contact springs, whose stiffness
  ``contact_stiffness`` says: the period of a contact in substeps. Softer contacts sink deeper.
  ``multiccd`` 1: hulls meet in up to four points instead of one.
- "xpbd": restitution is a parameter of its own. It has no ropes, and cloth and solids pull at no
  body that they are pinned to: free ones are refused.
- "vbd" (default with deformables): everything by vertex block descent. ``warm_start`` 1 begins
  each substep as the method's paper says and Newton does not (`wmeval.sim.engines.newton_vbd`).

  Vertices touch bodies, edges and faces do not; their contacts are found once a substep among
  those nearer than ``contact_gap`` [m], each with one plane for the whole substep. A vertex that
  passes under a body's edge in a substep is therefore pushed by the side of it, and damped: thin
  cloth that is drawn from under a free box throws it over, unless the gap is less than what moves
  in a substep and ``particle_contact_damping`` [N s/m] small. A contact has the means of that, and
  of ``particle_contact_stiffness`` [N/m], and of what its shape has: 100 N s/m (also the given
  value, where one is given; -1: the engine's own) and 2.5 kN/m.

  Bodies and a rope's capsules press on each other by ``body_contact_stiffness`` [N/m]. A force is
  found anew from nothing in each substep, and in few iterations is not found in full where a light
  body holds a heavy one: heavy balls draw a thin rope through its beam. ``contact_history`` 1
  begins with the forces of the substep before, at contacts that are still there.
  Velocities are differences of places in single precision: what falls 5 m up in 3600 steps a second
  does at 12.2 m/s^2.

  A sheet that touches itself moves by at most 0.43 of ``self_contact_gap`` [m] and its thickness
  in a substep: 0.3 m/s at 180 steps a second. Wider gaps cost more, and more still from the size
  of its cells on.
- "mpm": blocks of elastic solid alone, by particles and a grid of cells of ``voxel`` [m] (0: a
  quarter of the narrowest block; `wmeval.sim.engines.newton_mpm`).

``graphs`` 0 launches everything anew in each substep, to the same bits.

Stiffness that is asked for is what `wmeval.assets.gauge_mapping` turns it into (the published
mapping, with its fall-backs) unless the options ``tri_ke``, ``tri_ka``, ``edge_ke`` say otherwise
(0: the mapping). What comes out depends on iterations and substeps as well. Pins of cloth and
solids follow bodies that stand or are led exactly; a dynamic body and what is pinned to it pull at
each other. A rope is a chain of capsules whose joints stretch and bend; its pins are joints about
a point, to any body. A body that holds cloth or a solid does not touch what is made of particles.

Friction of a pair is the product of the bodies' values, as everywhere here, by values of the
bodies' own that each solver's rule combines to it. No contacts are told and no rays cast.
"""

from __future__ import annotations

import contextlib
import functools
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Cloth, Meshes, Rope, Scene
from wmeval.sim.engines import newton_mpm as mpm
from wmeval.sim.engines.engine_options import info_of, options_of
from wmeval.sim.engines.newton_bodies import Making, Solver, add_bodies
from wmeval.sim.engines.newton_deformables import (
    Bent,
    add_deformables,
    check_bent,
    rope_nodes,
)
from wmeval.sim.engines.newton_steps import Steps
from wmeval.sim.engines.pins import Pinned, carried_pose, pinned_where
from wmeval.sim.engines.stepped import Numbers, Put, SteppedEngine
from wmeval.sim.protocol import EngineConfig, Vec

OPTIONS = {
    # option: (default, least, greatest)
    "contact_stiffness": (16.0, 2.0, 1e4),
    "tri_ke": (0.0, 0.0, 1e12),
    "tri_ka": (0.0, 0.0, 1e12),
    "edge_ke": (0.0, 0.0, 1e12),
    "particle_contact_stiffness": (1e3, 0.0, 1e9),
    "particle_contact_damping": (-1.0, -1.0, 1e9),
    "body_contact_stiffness": (2.5e3, 0.0, 1e9),
    "contact_history": (0, 0, 1),
    "elliptic": (0, 0, 1),
    "multiccd": (0, 0, 1),
    "graphs": (1, 0, 1),
    "warm_start": (0, 0, 1),
    "contact_gap": (0.01, 0.0, 1.0),
    "self_contact_gap": (4e-3, 1e-4, 1.0),
    "voxel": (0.0, 0.0, 1.0),
}
CHOICES = {
    "solver": ("auto", "mujoco", "xpbd", "vbd", "mpm"),
    "contact": ("default", "restitution"),
}
_FAR = 1e4
"""No particle of a solid is farther from the origin [m]."""
_BODY_CONTACTS = 512
"""Contacts of one body among bodies that can be told apart; Newton's own 64 drops a beam's."""


class NewtonEngine(SteppedEngine):
    """Rigid bodies, cloth and solids by Newton."""

    def __init__(self) -> None:
        super().__init__()
        self.info = info_of(
            "newton",
            ("rigid", "joint", "cloth", "soft", "rope"),
            deterministic=True,
            impulses=False,
        )
        self._model: Any = None
        self._steps_of: Any = None

    # --- making -----------------------------------------------------------------------------------

    def _make(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        self._numbers, words = options_of("newton", OPTIONS, config, CHOICES)
        self._solver_name = self._chosen(words["solver"], scene)
        restitution = words["contact"] == "restitution" or self._solver_name == "xpbd"
        # What it prints of its kernels is for nobody here.
        with contextlib.redirect_stdout(io.StringIO()):
            import newton
            import warp

            self._newton, self._warp = newton, warp
            warp.config.quiet = True
            with warp.ScopedDevice("cpu"):
                self._build(scene, meshes, config, restitution)

    def _chosen(self, word: str, scene: Scene) -> Solver:
        if word == "auto":
            return "vbd" if scene.deformables else "mujoco"
        if scene.deformables and word == "mujoco":
            raise UserError("newton: solver mujoco has no deformables: leave solver out, or vbd")
        if word == "mpm":
            mpm.check_scene(scene)
        if word == "xpbd":
            check_bent(scene, "xpbd")
        return word  # type: ignore[return-value]

    def _build(self, scene: Scene, meshes: Meshes, config: EngineConfig, restitution: bool) -> None:
        newton, warp = self._newton, self._warp
        builder = newton.ModelBuilder(up_axis=newton.Axis.Z, gravity=warp.vec3(*scene.gravity))
        if self._solver_name == "mujoco":
            newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        if self._solver_name == "mpm":
            newton.solvers.SolverImplicitMPM.register_custom_attributes(builder)
        making = Making(
            newton, warp, builder, scene, meshes, self._motion, self.dt, self._solver_name,
            self._numbers, restitution,
        )  # fmt: skip
        add_bodies(making)
        self._links = making.links
        self._filled: dict[str, mpm.Filled] = {}
        if self._solver_name == "mpm":
            self._filled = mpm.fill(making)
        self._bent = Bent() if self._filled else add_deformables(making)
        if self._solver_name == "vbd":
            builder.color(include_bending=True)
        self._model = model = builder.finalize(device="cpu")
        self._set_pins(model)
        self._set_contact(scene, model)
        self._solver = self._make_solver(model, config, making)
        self._control = model.control()
        states = model.state(), model.state()
        record = bool(self._numbers["graphs"]) and self._solver_name == "vbd" and not self._folds
        self._steps_of = Steps(warp, self._launch, states, record=record)
        for state in states:
            newton.eval_fk(model, model.joint_q, model.joint_qd, state)
        self._start(scene)
        self._contacts: Any = None
        if self._solver_name in ("xpbd", "vbd") and model.shape_count:
            self._pipeline = newton.CollisionPipeline(
                model,
                soft_contact_gap=self._numbers["contact_gap"],
                contact_matching="latest" if self._numbers["contact_history"] else "disabled",
            )
            self._contacts = self._pipeline.contacts()
        self._pushed = False
        self._held: dict[str, list[NDArray[np.float64]]] = {}
        self._damped = [
            (number, (1.0 - b.linear_damping) ** self.dt, (1.0 - b.angular_damping) ** self.dt)
            for i, number in self._links.items()
            if (b := scene.bodies[i]).linear_damping or b.angular_damping
        ]

    @property
    def _folds(self) -> bool:
        """Whether cloth touches itself."""
        return any(isinstance(d, Cloth) and d.self_contact for d in self._scene.deformables)

    def _set_pins(self, model: Any) -> None:
        if not self._bent.pins:
            return
        flags = model.particle_flags.numpy()
        for numbers, _ in self._bent.pins:
            flags[numbers] &= ~int(self._newton.ParticleFlags.ACTIVE)
        model.particle_flags.assign(flags)

    def _set_contact(self, scene: Scene, model: Any) -> None:
        values = {d.friction for d in scene.deformables if not isinstance(d, Rope)}
        if len(values) > 1:
            raise UserError(
                f"scene {scene.name!r}: engine newton has one friction for all deformables; they "
                f"have {', '.join(f'{v:g}' for v in sorted(values))}"
            )
        if values:
            friction = values.pop()
            model.soft_contact_mu = friction**2
            model.soft_contact_ke = self._numbers["particle_contact_stiffness"]
            damping = self._numbers["particle_contact_damping"]
            if damping >= 0 and self._solver_name == "vbd":
                # A contact has the mean of both sides' values.
                model.soft_contact_kd = damping
                if model.shape_count:
                    model.shape_material_kd.fill_(damping)
            if self._solver_name == "mpm" and model.shape_count:
                # That one takes the shape's value for the pair's.
                own = model.shape_material_mu.numpy()
                model.shape_material_mu.assign(np.sqrt(own) * friction)

    def _make_solver(self, model: Any, config: EngineConfig, making: Making) -> Any:
        solvers = self._newton.solvers
        if self._solver_name == "mpm":
            return mpm.make_solver(making, model, self._filled, config.iterations)
        if self._solver_name == "mujoco":
            return solvers.SolverMuJoCo(
                model,
                use_mujoco_cpu=True,
                iterations=config.iterations,
                cone="elliptic" if self._numbers["elliptic"] else "pyramidal",
                enable_multiccd=bool(self._numbers["multiccd"]),
            )
        if self._solver_name == "xpbd":
            return solvers.SolverXPBD(model, iterations=config.iterations, enable_restitution=True)
        touching = self._folds
        radius = max((d.thickness for d in self._scene.deformables if isinstance(d, Cloth)),
                     default=1e-3)  # fmt: skip
        base = solvers.SolverBase
        self_contact, when = base.CollisionSlot.SOFT_SELF_CONTACT, base.CollisionFrequencyType
        made = solvers.SolverVBD
        if self._numbers["warm_start"]:
            from wmeval.sim.engines.newton_vbd import WarmVBD

            made = functools.partial(WarmVBD, dt=self.dt)
        return made(
            model,
            iterations=config.iterations,
            particle_enable_self_contact=touching,
            particle_self_contact_margin=radius if touching else None,
            particle_self_contact_gap=self._numbers["self_contact_gap"] if touching else None,
            collision_frequency_type={self_contact: when.PRE_INIT} if touching else None,
            particle_enable_tile_solve=False,
            rigid_body_contact_buffer_size=_BODY_CONTACTS,
            rigid_contact_history=bool(self._numbers["contact_history"]),
        )

    def _start(self, scene: Scene) -> None:
        """Initial velocities, of jointed bodies too."""
        moving = False
        for i, number in self._links.items():
            body = scene.bodies[i]
            if not (any(body.linear_velocity) or any(body.angular_velocity)):
                continue
            put = body.position, body.quaternion_wxyz, body.linear_velocity, body.angular_velocity
            if self._motion[i] == DYNAMIC:
                self._write_body(number, put)
                moving = True
            else:
                self._carried[i] = put
        if moving:
            self._to_joints()

    # --- stepping ---------------------------------------------------------------------------------

    @property
    def _state(self) -> Any:
        return self._steps_of.now

    def _launch(self, now: Any, then: Any) -> None:
        if self._contacts is not None:
            self._pipeline.collide(now, self._contacts)
        self._solver.step(now, then, self._control, self._contacts, self.dt)

    def _step(self) -> None:
        with self._warp.ScopedDevice("cpu"):
            self._place_pins()
            self._place_grips()
            for body, put in self._carried.items():
                self._write_body(self._links[body], put)
            if self._carried:
                self._to_joints()
            self._steps_of()
            if self._pushed:
                self._steps_of.then.clear_forces()
                self._steps_of.now.clear_forces()
                self._pushed = False
            if self._damped:
                self._damp()

    def _damp(self) -> None:
        moving = self._state.body_qd.numpy()
        for number, linear, angular in self._damped:
            moving[number, :3] *= linear
            moving[number, 3:] *= angular
        self._to_joints()

    def _place_pins(self) -> None:
        if not self._bent.pins:
            return
        where, speed = self._state.particle_q.numpy(), self._state.particle_qd.numpy()
        after = self._steps_of.then.particle_q.numpy()
        for numbers, pin in self._bent.pins:
            where[numbers] = after[numbers] = self._pin_at(pin)
            speed[numbers] = 0.0

    def _place_grips(self) -> None:
        """Led particles where their bodies are, at their bodies' velocities."""
        if not self._filled:
            return
        state = self._state
        where, speed = state.particle_q.numpy(), state.particle_qd.numpy()
        turning = state.mpm.particle_qd_grad.numpy()
        if not float(np.abs(where).max()) < _FAR:
            # A grid over what is nowhere would be without end.
            raise self._lost("a solid of particles")
        for solid in self._filled.values():
            for numbers, pin in solid.grips:
                speed[numbers] = turning[numbers] = 0.0
                if pin.body is None:
                    where[numbers] = pin.local
                    continue
                place, (linear, spin) = self.pose(pin.body), self.velocity(pin.body)
                where[numbers] = at = pinned_where(pin, *place)
                speed[numbers] = np.array(linear) + np.cross(spin, at - np.array(place[0]))
                turning[numbers] = np.cross(spin, np.eye(3)).T
        self._held = {
            name: [self._pin_at(pin) for pin in solid.pins] for name, solid in self._filled.items()
        }

    def _pin_at(self, pin: Pinned) -> NDArray[np.float64]:
        """Where pinned vertices (n, 3) are when the substep is over: with what leads them."""
        if pin.body is None:
            return pinned_where(pin, None, None)
        place = carried_pose(*self.pose(pin.body), *self.velocity(pin.body), self.dt)
        return pinned_where(pin, *place)

    def _read(self) -> list[Numbers]:
        if not self._bodies:
            return []
        numbers = [self._links[i] for i in self._bodies]
        poses = self._state.body_q.numpy()[numbers]
        moving = self._state.body_qd.numpy()[numbers]
        both: list[Numbers] = np.concatenate([poses, moving], axis=1).astype(np.float64).tolist()
        return both

    def _read_vertices(self) -> dict[str, NDArray[np.float64]]:
        out: dict[str, NDArray[np.float64]] = {}
        if self._bent.ranges:
            where = self._state.particle_q.numpy()
            for name, (first, last) in self._bent.ranges.items():
                out[name] = where[first:last].astype(np.float64)
        for name, solid in self._filled.items():
            points = self._state.particle_q.numpy()[solid.first : solid.last]
            out[name] = vertices = solid.weights @ points.astype(np.float64)
            for k, pin in enumerate(solid.pins):
                vertices[pin.vertices] = self._held[name][k] if self._held else self._pin_at(pin)
        for name, (bodies, lengths) in self._bent.ropes.items():
            poses = self._state.body_q.numpy()[bodies].astype(np.float64)
            out[name] = rope_nodes(poses, lengths)
        return out

    def _put(self, body: int, put: Put) -> None:
        if body not in self._links:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} is static without a mass: engine newton "
                "cannot move it; make it kinematic"
            )
        if any(self._scene.bodies[body].name in (j.body, j.other) for j in self._scene.joints):
            raise self._lacks("puts bodies that a joint holds")
        self._write_body(self._links[body], put)
        self._to_joints()

    def _write_body(self, number: int, put: Put) -> None:
        position, (w, x, y, z), linear, angular = put
        self._state.body_q.numpy()[number] = (*position, x, y, z, w)
        self._state.body_qd.numpy()[number] = (*linear, *angular)

    def _to_joints(self) -> None:
        """Bring joint coordinates, which MuJoCo alone reads, up to the bodies that were put."""
        if self._solver_name == "mujoco":
            state = self._state
            self._newton.eval_ik(self._model, state, state.joint_q, state.joint_qd)

    def _push(self, body: int, force: Vec, at: Vec | None, torque: Vec) -> None:
        tx, ty, tz = torque
        if at is not None:
            arm = np.array(at) - np.array(self.pose(body)[0])
            tx, ty, tz = (np.array(torque) + np.cross(arm, np.array(force))).tolist()
        self._state.body_f.numpy()[self._links[body]] += np.array((*force, tx, ty, tz), np.float32)
        self._pushed = True

    def close(self) -> None:
        """Free everything; idempotent."""
        self._model = self._solver = self._steps_of = self._contacts = None


__all__ = ["CHOICES", "OPTIONS", "NewtonEngine"]
