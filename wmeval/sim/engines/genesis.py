"""Genesis on the CPU, in double precision: rigid bodies and joints.

- Its models give every joint a rotor inertia of 0.1 kg m^2 unless told otherwise, which makes a
  light pendulum several times too slow. Here a joint has the armature that the scene says; option
  ``default_armature`` brings Genesis' own back.
- It has no restitution (about 0.1 comes out). ``contact`` "restitution" maps it to the damping
  ratio of contacts, with ``contact_time`` the time constant [s] of their springs.
- Friction of a pair is the greater of the bodies' values to Genesis; bodies get values by which
  that is the product. Values below 0.01 are not to be had.
- ``substeps`` of Genesis' own lie within one of ours.

Kinematic bodies are heavy ones that are put back in every substep. No contacts are told and no rays
cast.
"""

from __future__ import annotations

import contextlib
import io
import math
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from wmeval.conventions import quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import (
    DYNAMIC,
    Body,
    Box,
    Capsule,
    Collision,
    Joint,
    Mesh,
    MeshData,
    Meshes,
    Scene,
    Sphere,
)
from wmeval.sim.engines.bullet_shapes import mass_properties
from wmeval.sim.engines.joint_tree import JointTree, joint_tree
from wmeval.sim.engines.pairs import own_values
from wmeval.sim.engines.stepped import Numbers, Put, SteppedEngine, info_of, options_of
from wmeval.sim.protocol import EngineConfig, Vec

OPTIONS = {
    # option: (default, least, greatest)
    "substeps": (1, 1, 1000),
    "default_armature": (0.0, 0.0, 1e3),
    "contact_time": (0.01, 1e-4, 1.0),
    "noslip_iterations": (0, 0, 1000),
}
CHOICES = {"contact": ("default", "restitution")}
_LEAST_FRICTION, _GREATEST_FRICTION = 0.01, 5.0
_HEAVY = 1e4
"""Mass [kg] of what a driver moves."""
_LEAST_RESTITUTION = 1e-3


class GenesisEngine(SteppedEngine):
    """Rigid bodies by Genesis."""

    def __init__(self) -> None:
        super().__init__()
        self.info = info_of("genesis", ("rigid", "joint"), deterministic=True, impulses=False)
        self._world: Any = None

    # --- making -----------------------------------------------------------------------------------

    def _make(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        self._numbers, words = options_of("genesis", OPTIONS, config, CHOICES)
        tree = joint_tree(scene, "genesis")
        for i in tree.order:
            self._check(scene.bodies[i])
        # What it prints of its progress is for nobody here.
        with contextlib.redirect_stdout(io.StringIO()):
            import genesis

            self._genesis = genesis
            if not getattr(genesis, "_initialized", False):
                genesis.init(backend=genesis.cpu, precision="64", logging_level="error")
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

    def _build(
        self, scene: Scene, meshes: Meshes, config: EngineConfig, tree: JointTree, bouncing: bool
    ) -> None:
        gs = self._genesis
        self._world = gs.Scene(
            sim_options=gs.options.SimOptions(
                dt=self.dt, substeps=int(self._numbers["substeps"]), gravity=scene.gravity
            ),
            rigid_options=gs.options.RigidOptions(
                iterations=config.iterations,
                noslip_iterations=int(self._numbers["noslip_iterations"]),
                constraint_timeconst=self._numbers["contact_time"],
            ),
            show_viewer=False,
        )
        friction = own_values(scene, "friction", "max", _GREATEST_FRICTION)
        restitution = own_values(scene, "restitution", "geometric", 1.0) if bouncing else {}
        entities = []
        with tempfile.TemporaryDirectory() as folder:
            for number, roots in enumerate(_trees(tree, scene)):
                path = Path(folder) / f"tree_{number}.xml"
                _write_mjcf(path, scene, meshes, tree, roots, self._motion)
                carried = any(self._motion[i] != DYNAMIC and self._moves(i) for i in roots)
                entities.append(
                    (
                        self._world.add_entity(
                            gs.morphs.MJCF(
                                file=str(path),
                                default_armature=self._numbers["default_armature"],
                            ),
                            material=gs.materials.Rigid(gravity_compensation=float(carried)),
                        ),
                        roots,
                    )
                )
            self._world.build()
        self._solver = self._world.sim.rigid_solver
        self._links: dict[int, Any] = {}
        self._entities: dict[int, Any] = {}
        for entity, roots in entities:
            for i in roots:
                link = entity.get_link(_name(i))
                self._links[i], self._entities[i] = link, entity
                for geom in link.geoms:
                    geom.set_friction(max(friction[i], _LEAST_FRICTION))
                    if bouncing:
                        geom.set_sol_params(self._contact(restitution[i]))
        self._indices: tuple[tuple[int, ...], Any] = ((), None)
        for i in tree.order:
            self._start(i, scene.bodies[i])

    def _moves(self, i: int) -> bool:
        """Whether a body has coordinates of its own: all but the static ones without a mass."""
        body = self._scene.bodies[i]
        return body.motion != "static" or body.mass > 0

    def _contact(self, restitution: float) -> list[float]:
        log = -math.log(max(restitution, _LEAST_RESTITUTION))
        ratio = log / math.hypot(math.pi, log)
        return [self._numbers["contact_time"], max(ratio, 1e-3), 0.95, 0.99, 1e-4, 0.5, 2.0]

    def _start(self, i: int, body: Body) -> None:
        put = body.position, body.quaternion_wxyz, body.linear_velocity, body.angular_velocity
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
        for body, put in self._carried.items():
            self._place(body, put)
        self._world.step()

    def _place(self, body: int, put: Put) -> None:
        position, quaternion, linear, angular = put
        entity = self._entities[body]
        entity.set_pos(position)
        entity.set_quat(quaternion)
        entity.set_dofs_velocity([*linear, *angular])

    def _read(self) -> list[Numbers]:
        if not self._bodies:
            return []
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

    def _put(self, body: int, put: Put) -> None:
        scene = self._scene
        if not self._moves(body):
            raise UserError(
                f"body {scene.bodies[body].name!r} is static without a mass: engine genesis cannot "
                "move it; make it kinematic"
            )
        if any(scene.bodies[body].name in (j.body, j.other) for j in scene.joints):
            raise self._lacks("puts bodies that a joint holds")
        self._place(body, put)

    def _push(self, body: int, force: Vec, at: Vec | None, torque: Vec) -> None:
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


# --- a tree as MJCF -------------------------------------------------------------------------------


def _name(i: int) -> str:
    return f"body_{i}"


def _trees(tree: JointTree, scene: Scene) -> list[list[int]]:
    """Bodies that hang together, each list parents first."""
    of: dict[int, list[int]] = {}
    out: list[list[int]] = []
    for i in tree.order:
        joint = tree.held.get(i)
        group = of[scene.index(joint.other)] if joint is not None and joint.other else []
        if not group:
            out.append(group)
        group.append(i)
        of[i] = group
    return out


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _write_mjcf(
    path: Path,
    scene: Scene,
    meshes: Meshes,
    tree: JointTree,
    bodies: list[int],
    motion: list[int],
) -> None:
    """One tree of bodies as a MuJoCo model file, with its meshes beside it."""
    model = ElementTree.Element("mujoco", model=path.stem)
    ElementTree.SubElement(model, "compiler", angle="radian", autolimits="true")
    assets = ElementTree.SubElement(model, "asset")
    world = ElementTree.SubElement(model, "worldbody")
    nodes: dict[int, ElementTree.Element] = {}
    for i in bodies:
        body, joint = scene.bodies[i], tree.held.get(i)
        parent, place, turn = world, np.array(body.position), np.array(body.quaternion_wxyz)
        if joint is not None and joint.other:
            k = scene.index(joint.other)
            parent, on = nodes[k], scene.bodies[k]
            back = quaternion_conjugate(np.array(on.quaternion_wxyz))
            place = quaternion_to_matrix(back) @ (place - np.array(on.position))
            turn = quaternion_multiply(back, turn)
        node = nodes[i] = ElementTree.SubElement(
            parent, "body", name=_name(i), pos=_text(place), quat=_text(turn)
        )
        _joint(node, i, body, joint)
        _inertia(node, body, meshes, dynamic=motion[i] == DYNAMIC)
        for number, part in enumerate(body.collision):
            _geom(node, assets, body, part, meshes, path, f"{_name(i)}_{number}")
    path.write_text(ElementTree.tostring(model, encoding="unicode"))


def _joint(node: ElementTree.Element, i: int, body: Body, joint: Joint | None) -> None:
    if joint is None:
        if body.motion != "static" or body.mass > 0:
            ElementTree.SubElement(node, "freejoint", name=f"{_name(i)}_free")
        return
    if joint.kind == "fixed":
        return
    back = quaternion_to_matrix(np.array(body.quaternion_wxyz)).T
    fields = {
        "name": f"{_name(i)}_joint",
        "type": joint.kind,
        "pos": _text(back @ (np.array(joint.pivot) - np.array(body.position))),
    }
    if joint.kind == "hinge":
        fields["axis"] = _text(back @ np.array(joint.axis))
        fields["damping"] = repr(joint.damping)
        if joint.armature:
            fields["armature"] = repr(joint.armature)
    ElementTree.SubElement(node, "joint", fields)


def _inertia(node: ElementTree.Element, body: Body, meshes: Meshes, *, dynamic: bool) -> None:
    mass, tensor = _HEAVY, np.eye(3) * _HEAVY
    if dynamic:
        _, centre, tensor = mass_properties(body, meshes)
        mass = body.mass
        if float(np.abs(centre).max()) > 1e-4:
            raise UserError(
                f"body {body.name!r}: the centre of mass of its shapes is at "
                f"{centre.round(4).tolist()} m in its own frame; move the shapes so that it is at 0"
            )
    ElementTree.SubElement(
        node, "inertial", pos="0 0 0", mass=repr(float(mass)),
        fullinertia=_text(tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]),
    )  # fmt: skip


def _geom(
    node: ElementTree.Element,
    assets: ElementTree.Element,
    body: Body,
    part: Collision,
    meshes: Meshes,
    path: Path,
    name: str,
) -> None:
    shape = part.shape
    fields = {"name": name, "pos": _text(part.position), "quat": _text(part.quaternion_wxyz)}
    if isinstance(shape, Sphere):
        fields |= {"type": "sphere", "size": _text([shape.radius])}
    elif isinstance(shape, Box):
        fields |= {"type": "box", "size": _text(shape.half_extents)}
    elif isinstance(shape, Mesh):
        if shape.sha256 not in meshes:
            raise UserError(
                f"body {body.name!r}: mesh {shape.sha256[:12]}... is not among the meshes"
            )
        if not shape.convex:
            raise UserError(
                f"body {body.name!r}: engine genesis takes convex meshes; build it from several "
                "shapes"
            )
        file = path.with_name(f"{path.stem}_{name}.obj")
        _write_obj(file, meshes[shape.sha256])
        ElementTree.SubElement(assets, "mesh", name=name, file=str(file))
        fields |= {"type": "mesh", "mesh": name}
    else:
        half = shape.height / 2
        if isinstance(shape, Capsule):
            half -= shape.radius
        fields |= {"type": shape.kind, "size": _text((shape.radius, half))}
    ElementTree.SubElement(node, "geom", fields)


def _write_obj(path: Path, mesh: MeshData) -> None:
    lines = [f"v {_text(v)}" for v in mesh.vertices.astype(np.float64)]
    lines += [f"f {a} {b} {c}" for a, b, c in (mesh.triangles.astype(np.int64) + 1).tolist()]
    path.write_text("\n".join(lines) + "\n")
