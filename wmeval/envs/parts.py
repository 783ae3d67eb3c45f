"""Bodies that several scenes are made of."""

from __future__ import annotations

import math
from typing import Any

from wmeval.conventions import axis_angle_quaternion
from wmeval.scene import (
    IDENTITY,
    Body,
    Box,
    Collision,
    Color,
    Material,
    Quat,
    Sphere,
    Texture,
    Vec3,
    Visual,
)


def ball(name: str, role: str, instance: int, *, material: str, radius: float, mass: float,
         **physics: Any) -> Body:  # fmt: skip
    """A dynamic ball of ``radius`` [m] and ``mass`` [kg]; ``physics`` are fields of `Body`."""
    shape = Sphere(radius=radius)
    return Body(
        name=name, role=role, motion="dynamic", instance=instance,
        collision=(Collision(shape=shape),), visuals=(Visual(shape=shape, material=material),),
        mass=mass, **physics,
    )  # fmt: skip


def block(name: str, role: str, instance: int, *, material: str, half: Vec3, bevel: float = 0.0,
          **physics: Any) -> Body:  # fmt: skip
    """A static box of half extents ``half`` [m]; ``physics`` are fields of `Body`."""
    return Body(
        name=name, role=role, motion="static", instance=instance,
        collision=(Collision(shape=Box(half_extents=half)),),
        visuals=(Visual(shape=Box(half_extents=half, bevel=bevel), material=material),),
        **physics,
    )  # fmt: skip


def material(name: str, builder: str, *colors: Color, **look: Any) -> Material:
    """A material of one texture; ``look`` are fields of `Material`, and the texture's own."""
    texture = {k: look.pop(k) for k in ("repeat", "seed") if k in look}
    return Material(name=name, texture=Texture(builder=builder, colors=colors, **texture), **look)


def yaw(degrees: float) -> Quat:
    """Rotation about the vertical."""
    if degrees == 0:
        return IDENTITY
    w, x, y, z = axis_angle_quaternion((0.0, 0.0, 1.0), math.radians(degrees)).tolist()
    return (w, x, y, z)


def unit(v: Vec3) -> Vec3:
    """Direction of a vector."""
    n = math.hypot(*v)
    return (v[0] / n, v[1] / n, v[2] / n)
