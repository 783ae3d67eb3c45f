"""Dice, puzzle cube and rubber duck."""

from __future__ import annotations

import itertools

import numpy as np

from wmeval.assets.meshes import box, merge
from wmeval.assets.models import Part
from wmeval.assets.objects.forms import bell, ellipsoid, look, part, placed
from wmeval.assets.skin import Array, round_skin
from wmeval.assets.solids import moved
from wmeval.scene import MeshData

Parts = tuple[Part, ...]

# The faces of `box`, in its order: axis of u and its sign, axis of v.
_FACES = ((1, 1, 2), (1, -1, 2), (0, -1, 2), (0, 1, 2), (0, 1, 1), (0, -1, 1))


def _on_atlas(mesh: MeshData, half: float) -> MeshData:
    """Texture coordinates on an atlas of three by two faces of a cube about the origin.

    ``mesh`` is a `box`, so that its vertices come face by face.
    """
    count = len(mesh.vertices) // 6
    uv = np.empty((len(mesh.vertices), 2))
    for face, (u_axis, u_sign, v_axis) in enumerate(_FACES):
        rows = slice(face * count, (face + 1) * count)
        place = mesh.vertices[rows].astype(np.float64) / half
        inside = np.stack([u_sign * place[:, u_axis], -place[:, v_axis]], axis=1) * 0.498 + 0.5
        uv[rows] = (np.array([face % 3, face // 3]) + inside) / np.array([3, 2])
    return MeshData(
        mesh.vertices, mesh.triangles, mesh.normals, np.ascontiguousarray(uv, np.float32)
    )


def _outside(mesh: MeshData, half: float) -> MeshData:
    """Without the triangles that lie within a cube of half extent ``half``."""
    out = np.abs(mesh.vertices).max(axis=1) > half + 1e-4
    kept = mesh.triangles[out[mesh.triangles].any(axis=1)]
    used, again = np.unique(kept, return_inverse=True)
    return MeshData(
        mesh.vertices[used],
        np.ascontiguousarray(np.asarray(again).reshape(-1, 3), np.uint32),
        mesh.normals[used],
        mesh.uv[used],
    )


def large_dice() -> Parts:
    """A die with rounded corners; opposite faces have seven pips."""
    die = look("dice_faces", "dice_faces", (0.78, 0.76, 0.70), (0.015, 0.015, 0.018),
               roughness=0.25, specular=0.55)  # fmt: skip
    fine, coarse = box((0.5, 0.5, 0.5), 0.11, 4), box((0.5, 0.5, 0.5), 0.11, 1)
    return (Part(_on_atlas(fine, 0.5), die, ((_on_atlas(coarse, 0.5), 0.014),)),)


def rubiks_cube() -> Parts:
    """A puzzle cube of 26 pieces, scrambled."""
    third, bevel = 1 / 3, 0.022
    pieces = [
        _outside(
            _on_atlas(
                moved(box((0.5 * third,) * 3, bevel, 1), x * third, y * third, z * third), 0.5
            ),
            0.5 - bevel,
        )
        for x, y, z in itertools.product((-1, 0, 1), repeat=3)
        if (x, y, z) != (0, 0, 0)
    ]
    faces = look("cube_stickers", "cube_stickers", (0.020, 0.020, 0.022), (0.80, 0.80, 0.78),
                 (0.86, 0.70, 0.02), (0.60, 0.018, 0.02), (0.88, 0.24, 0.012), (0.015, 0.10, 0.50),
                 (0.015, 0.33, 0.075), roughness=0.3, specular=0.5)  # fmt: skip
    stand_in = _on_atlas(box((0.5, 0.5, 0.5), 0.02, 1), 0.5)
    return (Part(merge(pieces), faces, ((stand_in, 0.022),)),)


def toy_duck() -> Parts:
    """A yellow rubber duck with a flat foot, looking along +x."""

    def body(d: Array) -> Array:
        x, y, z = d.T
        back = np.clip(-x - 0.35, 0, 1) / 0.65
        out = np.stack([0.52 * x, 0.40 * y * (1 - 0.45 * back**1.5), 0.31 * z], axis=1)
        out[:, 2] += 0.24 * back**1.8 * (0.6 + 0.4 * z) + 0.05 * bell(x - 0.55, 0.4) * (z > 0) * z
        # Flat below, with a soft edge.
        low = -0.235
        soft = 0.03
        deep = np.clip((low + soft - out[:, 2]) / soft, 0, None)
        floor = np.maximum(low + soft * (1 - np.tanh(deep)), low + 0.15 * soft)
        out[:, 2] = np.where(deep > 0, floor, out[:, 2])
        return np.asarray(out)

    def bill(d: Array) -> Array:
        x, y, z = d.T
        front = np.clip(x, 0, 1)
        out = np.stack([0.15 * x, 0.105 * y * (1 + 0.25 * front), 0.045 * z * (1 - 0.5 * front)], 1)
        out[:, 2] += 0.045 * front**2
        return np.asarray(out)

    def wing(d: Array) -> Array:
        x, y, z = d.T
        back = np.clip(-x, 0, 1)
        out = np.stack([0.24 * x, 0.06 * y, 0.13 * z * (1 - 0.55 * back)], axis=1)
        out[:, 2] += 0.10 * back**2
        return np.asarray(out)

    yellow = look("duck_yellow", "plain", (0.88, 0.58, 0.015), roughness=0.32, specular=0.5)
    orange = look("duck_bill", "plain", (0.85, 0.16, 0.008), seed=1, roughness=0.35, specular=0.5)
    white = look("duck_eye", "plain", (0.82, 0.82, 0.80), seed=2, roughness=0.2, specular=0.6)
    black = look("duck_pupil", "plain", (0.012, 0.012, 0.014), seed=3, roughness=0.1, specular=0.8)
    head = placed(ellipsoid(0.245, 0.235, 0.235, columns=32, rows=16), 0.24, 0, 0.42)
    eyes, pupils = [], []
    for side in (-1, 1):
        eyes.append(
            placed(ellipsoid(0.03, 0.055, 0.065, columns=16, rows=8), 0.405, side * 0.135, 0.475,
                   tilt=(0, 0, -side * 25)).mesh
        )  # fmt: skip
        pupils.append(
            placed(ellipsoid(0.02, 0.034, 0.042, columns=16, rows=8), 0.424, side * 0.142, 0.472,
                   tilt=(0, 0, -side * 25)).mesh
        )  # fmt: skip
    return (
        part(round_skin(body, columns=48, rows=24), yellow),
        part(head, yellow),
        *(
            part(
                placed(round_skin(wing, columns=16, rows=16), -0.08, side * 0.365, 0.07,
                       tilt=(side * -12, 0, side * -8)),
                yellow,
            )
            for side in (-1, 1)
        ),
        part(placed(round_skin(bill, columns=32, rows=8), 0.505, 0, 0.375), orange),
        part(
            placed(ellipsoid(0.10, 0.075, 0.025, columns=16, rows=8), 0.50, 0, 0.338), orange
        ),
        part(merge(eyes), white),
        part(merge(pupils), black),
    )  # fmt: skip
