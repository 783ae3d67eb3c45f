"""From a family's card to a scene: bodies, what bends, drives, markers, cameras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wmeval.assets import gauge_cards as cards
from wmeval.assets.gauge_cards import Family, Properties
from wmeval.assets.gauge_markers import MarkerSet, markers
from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import rest_shape
from wmeval.envs.gauge import bending
from wmeval.envs.gauge.bending import Chosen
from wmeval.envs.gauge.bodies import (
    Made,
    SetUp,
    add_body,
    add_bricks,
    add_furniture,
    add_ground,
    add_rope_chain,
    holds,
)
from wmeval.envs.gauge.looks import MATERIALS, SKY, sun_for
from wmeval.envs.gauge.motions import Drives, drives
from wmeval.envs.gauge.pairs import surfaces
from wmeval.envs.gauge.views import azimuth_of, cameras
from wmeval.scene import (
    Body,
    Box,
    Capsule,
    Cylinder,
    Deformable,
    Meshes,
    Scene,
    Soft,
    Sphere,
    Vec3,
)

F8 = NDArray[np.float64]

_FOAM_HOLDERS: dict[str, dict[str, dict[str, str]]] = {
    # family: deformable: face to the body that it follows
    **{
        name: {"foam": {"z-": "clamp_low", "z+": "clamp_top"}}
        for name in ("foam_stretching", "foam_compressing", "foam_shearing", "foam_twisting")
    },
    "foam_bending": {"foam": {"y-": "clamp_low", "y+": "clamp_top"}},
    "cantilever_beam": {
        "cube_1": {"y-": "pedestal", "y+": "cube_2"},
        "cube_3": {"y-": "cube_2", "y+": "cube_4"},
    },
}
ROPE_ENDS = ("ball_1", "ball_2")


@dataclass(frozen=True)
class Built:
    """A set-up as a world.

    Attributes:
        scene: with cameras and materials.
        meshes: by content hash.
        drives: drivers, settling time, hashes.
        markers: where they are at the start; None where bodies' poses are compared.
        ratios: Poisson's ratios as given and as chosen.
    """

    scene: Scene
    meshes: Meshes
    drives: Drives
    markers: MarkerSet | None
    ratios: tuple[Chosen, ...]


def foam_of(card: Family) -> tuple[str, ...]:
    """Bodies of a family that are blocks of foam."""
    return tuple(_FOAM_HOLDERS.get(card.id, {}))


def setup_of(
    card: Family, subtask: str, material: str,
    changes: Mapping[str, Mapping[str, float]] | None = None,
) -> SetUp:  # fmt: skip
    """Numbers and pair values of a set-up.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        changes: numbers in place of the card's, by body (fitted ones).

    Raises:
        UserError: no such subtask, material or number.
    """
    there = card.bodies_of(subtask, material)
    properties = {
        name: _changed(card.body_properties(subtask, material, name), (changes or {}).get(name, {}))
        for name in there
    }
    return SetUp(card, subtask, material, properties, surfaces(card, properties))


def _changed(own: Properties, changes: Mapping[str, float]) -> Properties:
    return Properties.model_validate({**own.model_dump(), **changes})


def build(
    card: Family,
    subtask: str,
    material: str,
    *,
    drive: str | None = None,
    rope_chain: bool = False,
    changes: Mapping[str, Mapping[str, float]] | None = None,
) -> Built:
    """The world of a set-up.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        drive: file of a measured motion, "action", or None: the card's.
        rope_chain: a rope is a chain of links, for engines that have no rope.
        changes: numbers in place of the card's, by body.

    Raises:
        UserError: no such subtask, material, or drive.
    """
    setup = setup_of(card, subtask, material, changes)
    there = card.bodies_of(subtask, material)
    made = Made()
    poses = card.poses(subtask, material)
    middle = _middle([poses[n].position for n in there if n in poses])
    add_ground(made, setup, middle)
    lift = bending.rope_clearance(setup) if "rope" in there else 0.0
    soft = _FOAM_HOLDERS.get(card.id, {})
    bends: list[Deformable] = []
    ratios: list[Chosen] = []
    for name, body in there.items():
        if isinstance(body.shape, cards.Bricks):
            add_bricks(made, setup, name)
        elif isinstance(body.shape, cards.Sheet):
            bends.append(bending.textile(setup, name))
        elif name in soft:
            foam, ratio = bending.foam(setup, name, soft[name])
            bends.append(foam)
            ratios.append(ratio)
        elif card.id == "stick_stack" and name == "rod":
            rod, ratio = bending.elastic_rod(setup, name, "clamp")
            bends.append(rod)
            ratios.append(ratio)
        elif not isinstance(body.shape, cards.Rope):
            add_body(made, setup, name, lift=lift if name in ROPE_ENDS else 0.0)
    damped: tuple[str, ...] = ()
    if "rope" in there:
        points = bending.rope_points(setup, lift)
        if rope_chain:
            add_rope_chain(made, setup, points, ROPE_ENDS)
        else:
            bends.append(bending.rope(setup, points, ROPE_ENDS))
        damped = tuple(b.name for b in made.bodies if b.motion == "dynamic")
    add_furniture(made, setup)
    frames = card.frames(subtask, material)
    led = drives(card, subtask, material, drive, (frames - 1) / cards.RECORD_HZ, damped)
    number = made.instance()
    bends = [d.model_copy(update={"instance": number + k}) for k, d in enumerate(bends)]
    shown = {v.material for b in made.bodies for v in b.visuals} | {d.material for d in bends}
    scene = Scene(
        name=f"{card.id}-{subtask}-{material}",
        gravity=(0.0, 0.0, -cards.GRAVITY),
        bodies=tuple(made.bodies),
        materials=tuple(m for m in MATERIALS.values() if m.name in shown),
        cameras=cameras(card.id, _seen(made, bends, led, card)),
        sun=sun_for(azimuth_of(card.id)),
        sky=SKY,
        joints=tuple(made.joints),
        deformables=tuple(bends),
    )
    worn = None if card.markers is None else _lifted(markers(card, subtask, material), bends, card)
    return Built(scene, made.meshes, led, worn, tuple(ratios))


def _middle(places: list[Vec3]) -> Vec3:
    x, y, z = np.mean(np.array(places), axis=0).tolist()
    return (x, y, z)


def _lifted(worn: MarkerSet, bends: list[Deformable], card: Family) -> MarkerSet:
    """Markers of a sheet that was raised to lie on what is below it."""
    if card.kind != "textile":
        return worn
    sheet = bends[0]
    pose = next(iter(card.subtasks.values())).poses["any"][sheet.name]
    lift = sheet.position[2] - pose.position[2]
    return replace(worn, points=worn.points + np.array([0.0, 0.0, lift]))


def _seen(made: Made, bends: list[Deformable], led: Drives, card: Family) -> F8:
    """Points that the cameras are to show: corners of everything, along its way (N, 3) [m]."""
    out = []
    bodies = made.bodies
    hung = {j.body for j in made.joints}
    floor = bodies[0].position[2] + 0.05
    # What something small happens on need not be seen to its far end.
    wide = {n for n, b in card.bodies.items() if b.motion == "fixed" and n in ("table", "board")
            and isinstance(b.shape, cards.Box)}  # fmt: skip
    for body in bodies:
        if body.role in ("ground", "furniture") or body.name in wide:
            continue
        turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
        corners = np.array(body.position) + _corners(body, made.meshes) @ turn.T
        out.append(corners)
        if body.role == "actor" and body.motion == "dynamic" and body.name not in hung:
            # What is free falls.
            out.append(np.array([[*body.position[:2], floor]]))
        out += [corners + offset for offset in led.leads.get(body.name, ())]
    out += [rest_shape(d, {}).vertices for d in bends]
    for name, one in card.bodies.items():
        ball = next((b for b in bodies if b.name == name), None)
        if one.rod is not None and ball is not None:
            # The pivot, and the lowest point of the swing.
            turn = quaternion_to_matrix(np.array(ball.quaternion_wxyz))
            pivot = np.array(ball.position) + turn @ np.array([0.0, 0.0, one.rod])
            out.append(np.array([pivot, pivot - np.array([0.0, 0.0, one.rod + 0.03])]))
            if abs(turn[2, 2]) < 0.7:
                out.append((2 * pivot - np.array(ball.position))[None])
    return np.concatenate(out)


def _corners(body: Body, meshes: Meshes) -> F8:
    """Corners of the boxes about a body's visual pieces, in its frame (N, 3)."""
    out = [np.zeros((1, 3))]
    for visual in body.visuals:
        shape = visual.shape
        if isinstance(shape, Sphere):
            half = np.full(3, shape.radius)
        elif isinstance(shape, Box):
            half = np.array(shape.half_extents)
        elif isinstance(shape, Cylinder | Capsule):
            half = np.array([shape.radius, shape.radius, shape.height / 2])
        else:
            half = np.abs(meshes[shape.sha256].vertices).max(axis=0).astype(np.float64)
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        turn = quaternion_to_matrix(np.array(visual.quaternion_wxyz))
        out.append(np.array(visual.position) + (signs * half) @ turn.T)
    return np.concatenate(out)


__all__ = ["Built", "Soft", "build", "foam_of", "holds", "setup_of"]
