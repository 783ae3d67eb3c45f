"""An artist's mannequin: rigid parts, ball joints, and the skeleton that says how they hang.

Proportions follow Drillis & Contini (1966) as printed in Winter, *Biomechanics and Motor Control of
Human Movement* (2009), figure 4.1: heights of ankle 0.039, knee 0.285, hip 0.530, shoulder 0.818
and chin 0.870 of the stature; upper arm 0.186, forearm 0.146, hand 0.108, foot 0.152. What the
figure does not give (distance of the hip and shoulder centres, girths, spine) is ours.

The figure's own frame has x to its right, y forward and z up; its origin is on the ground between
the feet. Every bone's frame is parallel to it in the rest pose (upright, arms hanging). Turning a
bone by a positive angle about x swings what hangs from the joint forward: positive are hip,
shoulder and elbow flexion and ankle dorsiflexion, negative is knee flexion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from wmeval.assets.loft import (
    clustered,
    column,
    loft,
    monotone_cubic,
    superellipse,
)
from wmeval.assets.meshes import merge
from wmeval.assets.solids import mirrored, moved
from wmeval.scene import Mesh, MeshData, Sphere, Vec3, Visual
from wmeval.vectors import minus, plus, scaled

STATURE_M = 1.75
"""Stature that the shapes are drawn for; all lengths scale with it."""

# Fractions of the stature.
ANKLE, KNEE, HIP, SHOULDER = 0.039, 0.285, 0.530, 0.818
UPPER_ARM, FOREARM, HAND, FOOT = 0.186, 0.146, 0.108, 0.152
HIP_HALF, SHOULDER_HALF = 0.054, 0.116
WAIST, CHEST, NECK = 0.590, 0.662, 0.838
HEEL_BACK, BALL_AHEAD = 0.037, 0.078
"""From the ankle to the heel's back and to the joint of the toes."""


@dataclass(frozen=True)
class Bone:
    """One rigid part.

    Attributes:
        name: of the part.
        parent: bone that it hangs from; None for the pelvis.
        joint: its joint from the parent's joint, as fractions of the stature (of the pelvis: from
            the ground).
        centre: middle of its mesh from its own joint, as fractions of the stature: the origin of
            its body.
        balls: joint balls that move with it: place from its own joint and radius, fractions.
    """

    name: str
    parent: str | None
    joint: Vec3
    centre: Vec3
    balls: tuple[tuple[Vec3, float], ...] = ()


def _limbs(side: str, sign: float) -> tuple[Bone, ...]:
    s = sign
    return (
        Bone(f"upper_arm_{side}", "chest", (s * SHOULDER_HALF, 0.0, SHOULDER - CHEST - 0.006),
             (s * 0.003, 0.0, -0.081), (((0.0, 0.0, 0.0), 0.0305),)),
        Bone(f"forearm_{side}", f"upper_arm_{side}", (s * 0.006, 0.0, -UPPER_ARM),
             (0.0, 0.0, -0.076), (((0.0, 0.0, 0.0), 0.0215),)),
        Bone(f"hand_{side}", f"forearm_{side}", (0.0, 0.002, -FOREARM),
             (0.0, 0.004, -0.052), (((0.0, 0.0, 0.0), 0.0140),)),
        Bone(f"thigh_{side}", "pelvis", (s * HIP_HALF, 0.0, 0.0),
             (0.0, 0.0, -0.118), (((0.0, 0.0, 0.0), 0.0450),)),
        Bone(f"shank_{side}", f"thigh_{side}", (0.0, 0.0, KNEE - HIP),
             (0.0, -0.004, -0.124), (((0.0, 0.0, 0.0), 0.0300),)),
        Bone(f"foot_{side}", f"shank_{side}", (0.0, 0.0, ANKLE - KNEE),
             (0.0, 0.024, -0.019), (((0.0, 0.0, 0.0), 0.0215),)),
        Bone(f"toes_{side}", f"foot_{side}", (0.0, BALL_AHEAD, 0.0115 - ANKLE),
             (0.0, 0.017, 0.0)),
    )  # fmt: skip


SKELETON: tuple[Bone, ...] = (
    Bone("pelvis", None, (0.0, 0.0, HIP), (0.0, -0.002, 0.016)),
    Bone("waist", "pelvis", (0.0, 0.0, WAIST - HIP), (0.0, 0.0, 0.036),
         (((0.0, 0.0, -0.004), 0.047),)),
    Bone("chest", "waist", (0.0, 0.0, CHEST - WAIST), (0.0, 0.0, 0.083),
         (((0.0, 0.0, 0.0), 0.045),)),
    Bone("head", "chest", (0.0, -0.004, NECK - CHEST), (0.0, 0.012, 0.090),
         (((0.0, 0.0, 0.0), 0.0270), ((0.0, 0.003, 0.022), 0.0265))),
    *_limbs("right", 1.0),
    *_limbs("left", -1.0),
)  # fmt: skip
"""Parents come before their children."""

EYE: Vec3 = (0.0, 0.052, 0.936 - NECK)
"""Between the eyes from the head's joint, as fractions of the stature."""


# --- shapes, drawn for STATURE_M in metres from the bone's joint --------------------------------


def _thigh() -> MeshData:
    return column(
        [(-0.412, 0.030, 0.030, 0.0, 0.002), (-0.400, 0.050, 0.050, 0.0, 0.002),
         (-0.360, 0.055, 0.058, 0.0, 0.001), (-0.250, 0.069, 0.073, 0.0, 0.004),
         (-0.120, 0.080, 0.085, 0.0, 0.004), (-0.030, 0.081, 0.087, 0.002, 0.0),
         (0.010, 0.068, 0.076, 0.004, 0.0), (0.028, 0.034, 0.040, 0.006, 0.0)],
    )  # fmt: skip


def _shank() -> MeshData:
    return column(
        [(-0.412, 0.026, 0.030, 0.0, -0.002), (-0.402, 0.035, 0.041, 0.0, -0.002),
         (-0.340, 0.036, 0.043, 0.0, -0.006), (-0.240, 0.046, 0.056, 0.0, -0.014),
         (-0.130, 0.057, 0.066, 0.0, -0.018), (-0.060, 0.055, 0.061, 0.0, -0.009),
         (-0.022, 0.048, 0.051, 0.0, -0.002), (-0.008, 0.028, 0.030, 0.0, 0.0)],
    )  # fmt: skip


def _foot() -> MeshData:
    # From the heel to the ball, as a column along y: its rings are laid down at the end.
    sole = -ANKLE * STATURE_M
    rows = [
        # y, half width, top above the sole, bottom above the sole
        (-0.066, 0.010, 0.034, 0.014), (-0.060, 0.024, 0.052, 0.004), (-0.040, 0.033, 0.078, 0.0),
        (-0.010, 0.036, 0.092, 0.0), (0.025, 0.036, 0.088, 0.0), (0.060, 0.038, 0.068, 0.0),
        (0.100, 0.043, 0.050, 0.0), (0.130, 0.044, 0.040, 0.0), (0.139, 0.036, 0.034, 0.004),
    ]  # fmt: skip
    return _laid(rows, sole)


def _toes() -> MeshData:
    sole = -0.0115 * STATURE_M
    rows = [
        (-0.008, 0.034, 0.032, 0.006), (0.002, 0.043, 0.037, 0.0), (0.030, 0.043, 0.031, 0.0),
        (0.050, 0.037, 0.027, 0.001), (0.060, 0.027, 0.023, 0.004), (0.065, 0.012, 0.017, 0.009),
    ]  # fmt: skip
    return _laid(rows, sole)


def _laid(rows: list[tuple[float, float, float, float]], sole: float) -> MeshData:
    """A shape along y whose underside lies on the plane z = ``sole``, flattened below."""
    table = np.array(rows)
    y = table[:, 0]
    fine = np.unique(np.concatenate([np.linspace(a, b, 4) for a, b in pairwise(y)]))
    width, top, bottom = (monotone_cubic(y, table[:, k], fine) for k in (1, 2, 3))
    rings = []
    for at, w, high, low in zip(fine, width, top, bottom, strict=True):
        out = superellipse(24, w, 0.5 * (high - low), 2.4)
        # The lower half is squarer: a sole.
        under = out[:, 1] < 0
        flat = superellipse(24, w, 0.5 * (high - low), 5.0)
        out[under] = flat[under]
        z = sole + 0.5 * (high + low) + out[:, 1]
        # Counter-clockwise seen from +y: x runs to the left there.
        rings.append(np.column_stack([-out[:, 0], np.full(24, at), z]))
    return loft(np.array(rings), crease_deg=55.0)


def _upper_arm() -> MeshData:
    return column(
        [(-0.312, 0.018, 0.020, 0.010, 0.0), (-0.304, 0.031, 0.034, 0.010, 0.0),
         (-0.270, 0.036, 0.040, 0.009, 0.0), (-0.160, 0.043, 0.050, 0.006, 0.002),
         (-0.070, 0.047, 0.055, 0.004, 0.001), (-0.020, 0.046, 0.052, 0.002, 0.0),
         (0.012, 0.037, 0.042, 0.001, 0.0), (0.030, 0.016, 0.018, 0.0, 0.0)],
        points=18,
    )  # fmt: skip


def _forearm() -> MeshData:
    return column(
        [(-0.246, 0.016, 0.018, 0.0, 0.003), (-0.240, 0.023, 0.028, 0.0, 0.003),
         (-0.200, 0.026, 0.032, 0.0, 0.002), (-0.120, 0.034, 0.042, 0.0, 0.001),
         (-0.065, 0.038, 0.046, 0.0, 0.0), (-0.025, 0.035, 0.040, 0.0, 0.0),
         (-0.010, 0.020, 0.022, 0.0, 0.0)],
        points=18,
    )  # fmt: skip


def _hand() -> MeshData:
    # Palm towards the thigh: thin along x, broad along y; fingers slightly bent, thumb in front.
    palm = column(
        [(-0.189, 0.005, 0.012, -0.014, 0.006), (-0.180, 0.009, 0.027, -0.013, 0.006),
         (-0.150, 0.012, 0.036, -0.008, 0.006), (-0.110, 0.015, 0.041, -0.002, 0.006),
         (-0.070, 0.018, 0.043, 0.001, 0.005), (-0.030, 0.018, 0.034, 0.001, 0.003),
         (-0.010, 0.015, 0.024, 0.0, 0.001), (0.002, 0.009, 0.012, 0.0, 0.0)],
        points=18, power=2.3,
    )  # fmt: skip
    thumb = column(
        [(-0.118, 0.004, 0.005, -0.018, 0.062), (-0.112, 0.009, 0.010, -0.017, 0.061),
         (-0.085, 0.011, 0.013, -0.012, 0.054), (-0.055, 0.012, 0.016, -0.006, 0.040),
         (-0.030, 0.010, 0.014, -0.002, 0.022)],
        points=12,
    )  # fmt: skip
    return merge([palm, thumb])


def _pelvis() -> MeshData:
    return column(
        [(-0.082, 0.030, 0.045, 0.0, -0.004), (-0.070, 0.064, 0.066, 0.0, -0.006),
         (-0.030, 0.118, 0.092, 0.0, -0.010), (0.010, 0.150, 0.105, 0.0, -0.010),
         (0.060, 0.147, 0.100, 0.0, -0.006), (0.100, 0.128, 0.088, 0.0, -0.002),
         (0.122, 0.112, 0.078, 0.0, 0.0), (0.134, 0.080, 0.056, 0.0, 0.0)],
        points=28, power=2.3,
    )  # fmt: skip


def _waist() -> MeshData:
    return column(
        [(-0.004, 0.080, 0.056, 0.0, 0.0), (0.008, 0.108, 0.076, 0.0, 0.0),
         (0.060, 0.117, 0.084, 0.0, 0.002), (0.112, 0.117, 0.084, 0.0, 0.003),
         (0.128, 0.084, 0.062, 0.0, 0.002)],
        points=28, power=2.3,
    )  # fmt: skip


def _chest() -> MeshData:
    return column(
        [(-0.006, 0.084, 0.064, 0.0, 0.002), (0.006, 0.121, 0.088, 0.0, 0.002),
         (0.060, 0.134, 0.099, 0.0, 0.004), (0.130, 0.153, 0.113, 0.0, 0.004),
         (0.190, 0.164, 0.116, 0.0, 0.000), (0.240, 0.168, 0.100, 0.0, -0.008),
         (0.272, 0.150, 0.080, 0.0, -0.014), (0.292, 0.100, 0.060, 0.0, -0.014),
         (0.304, 0.055, 0.042, 0.0, -0.012)],
        points=32, power=2.5,
    )  # fmt: skip


def _head() -> MeshData:
    skull = column(
        [(0.028, 0.018, 0.024, 0.0, 0.038), (0.036, 0.036, 0.042, 0.0, 0.038),
         (0.060, 0.052, 0.066, 0.0, 0.030), (0.095, 0.064, 0.084, 0.0, 0.020),
         (0.140, 0.073, 0.095, 0.0, 0.012), (0.185, 0.076, 0.099, 0.0, 0.008),
         (0.230, 0.071, 0.092, 0.0, 0.004), (0.262, 0.055, 0.071, 0.0, 0.002),
         (0.278, 0.033, 0.043, 0.0, 0.001), (0.2835, 0.010, 0.013, 0.0, 0.0)],
        points=28,
    )  # fmt: skip
    nose = column(
        [(0.103, 0.006, 0.008, 0.0, 0.104), (0.110, 0.013, 0.016, 0.0, 0.106),
         (0.130, 0.010, 0.014, 0.0, 0.103), (0.160, 0.006, 0.008, 0.0, 0.100)],
        points=12,
    )  # fmt: skip
    return merge([skull, nose])


_SHAPES: dict[str, Callable[[], MeshData]] = {
    "pelvis": _pelvis, "waist": _waist, "chest": _chest, "head": _head,
    "upper_arm": _upper_arm, "forearm": _forearm, "hand": _hand,
    "thigh": _thigh, "shank": _shank, "foot": _foot, "toes": _toes,
}  # fmt: skip


@lru_cache(maxsize=128)
def part_mesh(bone: str, stature: float = STATURE_M) -> MeshData:
    """Mesh of one bone about its ``centre``, in its own frame.

    Args:
        bone: name of a row of `SKELETON`.
        stature: of the figure [m].

    Raises:
        KeyError: no such bone.
    """
    row = {b.name: b for b in SKELETON}[bone]
    kind, left = bone.removesuffix("_left").removesuffix("_right"), bone.endswith("_left")
    mesh = _SHAPES[kind]()
    if left:
        mesh = mirrored(mesh)
    k = stature / STATURE_M
    return moved(mesh, *(-c * stature for c in row.centre), scale=k)


@lru_cache(maxsize=128)
def _part_shape(bone: str, stature: float) -> tuple[Mesh, dict[str, MeshData]]:
    """A bone's shape with its stand-ins for pictures from afar, and their meshes."""
    mesh = part_mesh(bone, stature)
    meshes = {mesh.content_hash(): mesh}
    coarser = []
    for cell in (0.05, 0.02, 0.01):
        stand_in, off = clustered(mesh, cell * stature / STATURE_M)
        meshes[stand_in.content_hash()] = stand_in
        coarser.append((stand_in.content_hash(), off))
    return Mesh(sha256=mesh.content_hash(), coarser=tuple(coarser)), meshes


@dataclass(frozen=True)
class Figure:
    """A mannequin's looks.

    Attributes:
        meshes: content hash to mesh, to be passed on with the scene.
        visuals: of each bone's body, by the bone's name; the body's origin is the bone's centre.
        positions: of each bone's body in the rest pose [m], feet on z = 0, facing +y.
    """

    meshes: dict[str, MeshData]
    visuals: dict[str, tuple[Visual, ...]]
    positions: dict[str, Vec3]


def mannequin(material: str, joint_material: str, *, stature: float = STATURE_M) -> Figure:
    """A figure's parts for a scene.

    Args:
        material: name of the scene's material of the parts.
        joint_material: name of that of the balls in the joints.
        stature: height [m].
    """
    meshes: dict[str, MeshData] = {}
    visuals: dict[str, tuple[Visual, ...]] = {}
    for bone in SKELETON:
        shape, made = _part_shape(bone.name, stature)
        meshes |= made
        balls = tuple(
            Visual(
                shape=Sphere(radius=radius * stature),
                material=joint_material,
                position=scaled(minus(place, bone.centre), stature),
            )
            for place, radius in bone.balls
        )
        visuals[bone.name] = (Visual(shape=shape, material=material), *balls)
    positions = {
        name: scaled(plus(joint, bone.centre), stature)
        for bone in SKELETON
        for name, joint in [(bone.name, joint_at_rest(bone.name))]
    }
    return Figure(meshes, visuals, positions)


@lru_cache(maxsize=64)
def joint_at_rest(bone: str) -> Vec3:
    """A bone's joint in the rest pose from the ground between the feet, fractions of stature."""
    row = {b.name: b for b in SKELETON}[bone]
    return row.joint if row.parent is None else plus(joint_at_rest(row.parent), row.joint)
