"""Bodies that hang together as model files that Genesis reads (MJCF)."""

from __future__ import annotations

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
    Meshes,
    Scene,
    Sphere,
)
from wmeval.sim.engines.bullet_shapes import centred_inertia
from wmeval.sim.engines.genesis_bending import write_surface
from wmeval.sim.engines.joint_tree import JointTree

_HEAVY = 1e4
"""Mass [kg] of what a driver moves."""


def body_name(i: int) -> str:
    """What body ``i`` is called there."""
    return f"body_{i}"


def trees(tree: JointTree, scene: Scene) -> list[list[int]]:
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


def write_mjcf(
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
            parent, "body", name=body_name(i), pos=_text(place), quat=_text(turn)
        )
        _joint(node, i, body, joint)
        _inertia(node, body, meshes, dynamic=motion[i] == DYNAMIC)
        for number, part in enumerate(body.collision):
            _geom(node, assets, body, part, meshes, path, f"{body_name(i)}_{number}")
    path.write_text(ElementTree.tostring(model, encoding="unicode"))


def _joint(node: ElementTree.Element, i: int, body: Body, joint: Joint | None) -> None:
    if joint is None:
        if body.motion != "static" or body.mass > 0:
            ElementTree.SubElement(node, "freejoint", name=f"{body_name(i)}_free")
        return
    if joint.kind == "fixed":
        return
    back = quaternion_to_matrix(np.array(body.quaternion_wxyz)).T
    fields = {
        "name": f"{body_name(i)}_joint",
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
        mass, tensor = body.mass, centred_inertia(body, meshes)
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
        if not shape.convex and body.motion == "dynamic":
            raise UserError(
                f"body {body.name!r}: engine genesis takes convex meshes of dynamic bodies; build "
                "it from several shapes"
            )
        file = path.with_name(f"{path.stem}_{name}.obj")
        mesh = meshes[shape.sha256]
        write_surface(file, mesh.vertices.astype(np.float64), mesh.triangles.astype(np.int32))
        ElementTree.SubElement(assets, "mesh", name=name, file=str(file))
        fields |= {"type": "mesh", "mesh": name}
    else:
        half = shape.height / 2
        if isinstance(shape, Capsule):
            half -= shape.radius
        fields |= {"type": shape.kind, "size": _text((shape.radius, half))}
    ElementTree.SubElement(node, "geom", fields)


__all__ = ["body_name", "trees", "write_mjcf"]
