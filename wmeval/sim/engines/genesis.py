"""Genesis on the CPU, in double precision: rigid bodies and joints, cloth, elastic solids.

- Its models give every joint a rotor inertia of 0.1 kg m^2 unless told otherwise, which makes a
  light pendulum several times too slow. Here a joint has the armature that the scene says; option
  ``default_armature`` brings Genesis' own back.
- It has no restitution (about 0.1 comes out). ``contact`` "restitution" maps it to the damping
  ratio of contacts (`wmeval.sim.engines.genesis_contacts`), and ``contact_time`` is then one over
  the angular frequency of their springs [s], 0 for as short as substeps allow; otherwise it is
  Genesis' time constant of all constraints, 0 for its own 0.01 s.
- Friction of a pair is the greater of the bodies' values to Genesis; bodies get values by which
  that is the product. Values below 0.01 are not to be had.
- ``substeps`` of Genesis' own lie within one of ours.
- ``apart`` 1 says that free bodies never meet: `wmeval.sim.engines.genesis_apart`.
- Cloth is moved by position-based dynamics: `wmeval.sim.engines.genesis_cloth` says how. Solids are
  moved by finite elements (`wmeval.sim.engines.genesis_fem`) or, with ``volume`` "mpm", by material
  points (`wmeval.sim.engines.genesis_mpm`); ``contact_softness`` is the distance [m] in which a
  rigid body's push on a solid fades by e.

Kinematic bodies are heavy ones that are put back in every substep; what holds cloth and solids does
not touch them. No contacts are told and no rays cast.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Body, Cloth, Mesh, Meshes, Scene, Soft
from wmeval.sim.engines import genesis_cloth, genesis_fem, genesis_mpm
from wmeval.sim.engines.engine_options import info_of, options_of
from wmeval.sim.engines.genesis_apart import OPTION as APART
from wmeval.sim.engines.genesis_apart import Apart, joint_speeds
from wmeval.sim.engines.genesis_bending import Bending, Bent, NowhereError, friction_of_solids
from wmeval.sim.engines.genesis_contacts import contact_numbers
from wmeval.sim.engines.genesis_models import body_name, trees, write_mjcf
from wmeval.sim.engines.genesis_pulls import Pulled
from wmeval.sim.engines.joint_tree import JointTree, joint_tree
from wmeval.sim.engines.pairs import own_values
from wmeval.sim.engines.pins import Pinned, carried_pose, pinned_vertices, pinned_where
from wmeval.sim.engines.stepped import Numbers, Put, SteppedEngine
from wmeval.sim.protocol import EngineConfig, Vec

OPTIONS = {
    # option: (default, least, greatest)
    "substeps": (1, 1, 1000),
    "default_armature": (0.0, 0.0, 1e3),
    "contact_time": (0.0, 0.0, 1.0),
    "noslip_iterations": (0, 0, 1000),
    "contact_softness": (2e-3, 1e-6, 1.0),
    **genesis_cloth.OPTIONS,
    **genesis_fem.OPTIONS,
    **genesis_mpm.OPTIONS,
    **APART,
}
CHOICES = {
    "contact": ("default", "restitution"),
    "volume": ("fem", "mpm"),
    **genesis_cloth.CHOICES,
}
_LEAST_FRICTION, _GREATEST_FRICTION = 0.01, 5.0
_CONTACT_TIME = 0.01
"""Genesis' own [s]."""
_SUBSTEPS_OF_SPRINGS = 3.0
"""One over the angular frequency of contacts whose restitution is told, in substeps."""
_PAIRS, _PAIRS_EACH = 150, 8
"""Pairs that may touch at once: Genesis' own, and for each body here, where these are more. Beyond,
it halts: a wall of 118 bricks has some 400."""


class GenesisEngine(SteppedEngine):
    """Rigid bodies, cloth and solids by Genesis."""

    def __init__(self) -> None:
        super().__init__()
        self.info = info_of(
            "genesis", ("rigid", "joint", "cloth", "soft"), deterministic=True, impulses=False
        )
        self._genesis: Any = None
        self._world: Any = None
        self._apart: Apart | None = None
        self._bending: list[Bending] = []

    # --- making -----------------------------------------------------------------------------------

    def _make(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        self._numbers, words = options_of("genesis", OPTIONS, config, CHOICES)
        tree = joint_tree(scene, "genesis")
        for i in tree.order:
            self._check(scene.bodies[i])
        bent = self._bent(scene, meshes)
        # What it prints of its progress is for nobody here.
        with contextlib.redirect_stdout(io.StringIO()):
            import genesis

            self._genesis = genesis
            if not getattr(genesis, "_initialized", False):
                genesis.init(backend=genesis.cpu, precision="64", logging_level="error")
            self._bending = self._ways(bent, words, tree)
            self._build(scene, meshes, config, tree, words["contact"] == "restitution")

    def _check(self, body: Body) -> None:
        for value, what in (
            (body.rolling_friction, "rolling_friction"),
            (body.upright, "upright"),
            (body.linear_damping or body.angular_damping, "damping of bodies"),
        ):
            if value:
                raise UserError(
                    f"body {body.name!r}: engine genesis has no {what}: run it with bullet"
                )

    def _bent(self, scene: Scene, meshes: Meshes) -> list[Bent]:
        """What bends, with its pins.

        Raises:
            UserError: cloth is pinned to a dynamic body.
        """
        out = []
        for item in scene.deformables:
            rest = rest_shape(item, meshes)
            pins = tuple(pinned_vertices(scene, item, rest.vertices))
            for pin in pins if isinstance(item, Cloth) else ():
                if pin.body is not None and self._motion[pin.body] == DYNAMIC:
                    raise UserError(
                        f"{item.kind} {item.name!r} is pinned to the dynamic body "
                        f"{scene.bodies[pin.body].name!r}: engine genesis pins cloth to bodies "
                        "that a driver moves"
                    )
            out.append(Bent(item, rest, pins))
        self._holding = {p.body for b in out for p in b.pins if p.body is not None}
        free = [i for i in self._holding if self._motion[i] == DYNAMIC]
        self._pulled = Pulled(scene, meshes, free, self.dt)
        return out

    def _ways(self, bent: list[Bent], words: dict[str, str], tree: JointTree) -> list[Bending]:
        """The solvers of what bends."""
        places = np.array([self._scene.bodies[i].position for i in tree.order]).reshape(-1, 3)
        cloth = [b for b in bent if isinstance(b.item, Cloth)]
        solids = [b for b in bent if isinstance(b.item, Soft)]
        out: list[Bending] = []
        if cloth:
            out.append(
                genesis_cloth.Cloths(self._genesis, cloth, self._numbers, words, self.dt, places)
            )
        if solids and words["volume"] == "fem":
            out.append(genesis_fem.Solids(self._genesis, solids, self._numbers, self.dt))
        elif solids:
            dynamic = {i for i in tree.order if self._motion[i] == DYNAMIC}
            out.append(
                genesis_mpm.Points(
                    self._genesis, self._scene, solids, self._numbers, self.dt, dynamic
                )
            )
        return out

    def _build(
        self, scene: Scene, meshes: Meshes, config: EngineConfig, tree: JointTree, bouncing: bool
    ) -> None:
        gs = self._genesis
        self._gravity = np.array(scene.gravity)
        substeps = max([int(self._numbers["substeps"]), *(b.substeps for b in self._bending)])
        self._substep = self.dt / substeps
        groups = self._groups(scene, tree)
        bodies = [i for group in groups for i in group]
        options: dict[str, Any] = {
            "sim_options": gs.options.SimOptions(
                dt=self.dt, substeps=substeps, gravity=scene.gravity
            ),
            "rigid_options": gs.options.RigidOptions(
                iterations=config.iterations,
                noslip_iterations=int(self._numbers["noslip_iterations"]),
                constraint_timeconst=self._numbers["contact_time"] or _CONTACT_TIME,
                enable_collision=any(self._motion[i] == DYNAMIC for i in bodies),
                max_collision_pairs=max(_PAIRS, _PAIRS_EACH * len(bodies)),
            ),
        }
        for bending in self._bending:
            options |= bending.scene_options()
        self._world = gs.Scene(**options, show_viewer=False)
        friction = own_values(scene, "friction", "max", _GREATEST_FRICTION)
        softer = friction_of_solids(scene)
        springs = self._numbers["contact_time"] or _SUBSTEPS_OF_SPRINGS * self._substep
        bounces = contact_numbers(scene, springs) if bouncing else {}
        entities = []
        with tempfile.TemporaryDirectory() as folder:
            for number, roots in enumerate(groups):
                path = Path(folder) / f"tree_{number}.xml"
                write_mjcf(path, scene, meshes, tree, roots, self._motion)
                carried = any(self._motion[i] != DYNAMIC and self._moves(i) for i in roots)
                entity = self._world.add_entity(
                    gs.morphs.MJCF(
                        file=str(path),
                        default_armature=self._numbers["default_armature"],
                        convexify=not any(_hollow(scene.bodies[i]) for i in roots),
                    ),
                    material=gs.materials.Rigid(
                        gravity_compensation=float(carried),
                        needs_coup=not self._holding.intersection(roots),
                        coup_friction=scene.bodies[roots[0]].friction * softer,
                        coup_softness=self._numbers["contact_softness"],
                    ),
                )
                entities.append((entity, roots))
            for bending in self._bending:
                bending.add(self._world, Path(folder))
            self._world.build(n_envs=0 if self._apart is None else len(self._apart.bodies))
        self._solver = self._world.sim.rigid_solver
        if self._bending and not any(self._moves(i) for i in bodies):
            _stand_still(self._solver)
        self._links: dict[int, Any] = {}
        self._entities: dict[int, Any] = {}
        self._rows_of: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
        for entity, roots in entities:
            for i in roots:
                link = entity.get_link(body_name(i))
                self._links[i], self._entities[i] = link, entity
                for geom in link.geoms:
                    geom.set_friction(max(friction[i], _LEAST_FRICTION))
                    if bouncing:
                        geom.set_sol_params([*bounces[i], 0.95, 0.99, 1e-4, 0.5, 2.0])
        if self._apart is not None:
            entity, roots = entities[-1]
            self._apart.begin(self._genesis, self._solver, entity, self._links[roots[0]])
            self._apart.place({i: _put_of(scene.bodies[i]) for i in self._apart.bodies})
            return
        for i in self._links:
            self._start(i, scene.bodies[i])
        for bending in self._bending:
            bending.begin(self._links)

    def _groups(self, scene: Scene, tree: JointTree) -> list[list[int]]:
        """Trees of bodies that Genesis is to know: all, or those that may touch anything."""
        out = trees(tree, scene)
        self._apart = Apart(scene, out, self._motion) if self._numbers["apart"] else None
        if self._apart is not None:
            return self._apart.groups
        if any(self._motion[i] == DYNAMIC for group in out for i in group):
            return out
        return [group for group in out if not self._holding.issuperset(group)]

    def _moves(self, i: int) -> bool:
        """Whether a body has coordinates of its own: all but the static ones without a mass."""
        body = self._scene.bodies[i]
        return body.motion != "static" or body.mass > 0

    def _start(self, i: int, body: Body) -> None:
        put = _put_of(body)
        if self._motion[i] != DYNAMIC:
            if self._moves(i):
                self._carried[i] = put
        elif any(body.linear_velocity) or any(body.angular_velocity):
            if body.name in {n for j in self._scene.joints for n in (j.body, j.other)}:
                self._spin(i, body)
            else:
                self._put(i, put)

    def _spin(self, i: int, body: Body) -> None:
        """Give a body of a joint to the world its initial turning."""
        joint = next(j for j in self._scene.joints if j.body == body.name)
        if joint.other or joint.kind == "fixed":
            raise UserError(
                f"body {body.name!r} begins with a velocity: engine genesis takes one only of free "
                "bodies and of those held to the world"
            )
        turning = np.array(body.angular_velocity)
        if joint.kind == "hinge":
            axis = np.array(joint.axis) / float(np.linalg.norm(joint.axis))
            rates = [float(turning @ axis)]
        else:
            rates = (quaternion_to_matrix(np.array(body.quaternion_wxyz)).T @ turning).tolist()
        self._entities[i].set_dofs_velocity(rates)

    # --- stepping ---------------------------------------------------------------------------------

    def _step(self) -> None:
        self._place(self._carried)
        self._pulled.begin()
        for bending in self._bending:
            for pin, places, forces in bending.pulls(self._gravity, self._pulled):
                assert pin.body is not None
                pull = self._pulled.add(pin.body, *self.pose(pin.body), places, forces)
                self._push(pin.body, pull[0], None, pull[1])
        for bending in self._bending:
            bending.lead(self._pin_at)
        try:
            self._world.step()
        except NowhereError as error:
            raise self._lost(str(error)) from error

    def _pin_at(self, pin: Pinned) -> NDArray[np.float64]:
        """Where pinned vertices (n, 3) are when the step is over: with what leads them."""
        if pin.body is None:
            return pinned_where(pin, None, None)
        speeds = self._pulled.speeds(pin.body, *self.velocity(pin.body))
        return pinned_where(pin, *carried_pose(*self.pose(pin.body), *speeds, self.dt))

    def _place(self, puts: Mapping[int, Put]) -> None:
        """Put free bodies, all at once: every call costs Genesis a pass over all."""
        if self._apart is not None:
            self._apart.place(puts)
            return
        known = [i for i in puts if i in self._entities]
        if not known:
            return
        key = tuple(known)
        if key not in self._rows_of:
            entities = [self._entities[i] for i in known]
            self._rows_of[key] = (
                [e.q_start + k for e in entities for k in range(7)],
                [e.dof_start + k for e in entities for k in range(6)],
            )
        coordinates, speeds = self._rows_of[key]
        poses = [x for i in known for part in puts[i][:2] for x in part]
        self._solver.set_qpos(np.array(poses), coordinates, skip_forward=True)
        self._solver.set_dofs_velocity(
            np.array([x for i in known for x in joint_speeds(puts[i])]), speeds
        )

    def _read(self) -> list[Numbers]:
        if not self._bodies:
            return []
        if self._apart is not None:
            return self._apart.read(self._bodies)
        rows = [self._links[i].idx for i in self._bodies]
        com = self._genesis.link_ref_frame.link_COM
        solver = self._solver
        parts = [
            np.asarray(tensor)[rows]
            for tensor in (
                solver.get_links_pos(ref=com),
                solver.get_links_quat(),
                solver.get_links_vel(ref=com),
                solver.get_links_ang(),
            )
        ]
        poses, turns, linear, angular = parts
        out: list[Numbers] = np.concatenate(
            [poses, turns[:, [1, 2, 3, 0]], linear, angular], axis=1
        ).tolist()
        return out

    def _read_vertices(self) -> dict[str, NDArray[np.float64]]:
        return {k: v for bending in self._bending for k, v in bending.vertices().items()}

    def _put(self, body: int, put: Put) -> None:
        scene = self._scene
        if not self._moves(body):
            raise UserError(
                f"body {scene.bodies[body].name!r} is static without a mass: engine genesis cannot "
                "move it; make it kinematic"
            )
        if any(scene.bodies[body].name in (j.body, j.other) for j in scene.joints):
            raise self._lacks("puts bodies that a joint holds")
        self._place({body: put})

    def _push(self, body: int, force: Vec, at: Vec | None, torque: Vec) -> None:
        if self._apart is not None:
            raise self._lacks("pushes bodies that are apart")
        com = self._genesis.link_ref_frame.link_COM
        tx, ty, tz = torque
        if at is not None:
            arm = np.array(at) - np.array(self.pose(body)[0])
            tx, ty, tz = (np.array(torque) + np.cross(arm, np.array(force))).tolist()
        self._solver.apply_links_external_wrench(
            force=np.array([force]), torque=np.array([(tx, ty, tz)]),
            links_idx=[self._links[body].idx], ref=com,
        )  # fmt: skip

    def close(self) -> None:
        """Free everything; idempotent."""
        if self._world is not None:
            self._world.destroy()
        self._world = self._solver = None
        self._bending, self._links, self._entities = [], {}, {}


def _put_of(body: Body) -> Put:
    return body.position, body.quaternion_wxyz, body.linear_velocity, body.angular_velocity


def _hollow(body: Body) -> bool:
    """Whether a body has a mesh that is not its hull."""
    return any(isinstance(p.shape, Mesh) and not p.shape.convex for p in body.collision)


def _stand_still(solver: Any) -> None:
    """Leave the rigid solver out of steps: what it knows stands still, to be touched."""
    solver.substep_pre_coupling = solver.substep_post_coupling = lambda f: None


__all__ = ["CHOICES", "OPTIONS", "GenesisEngine"]
