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
from wmeval.sim.protocol import DriverSpec


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


def ball_drivers(
    *, newtons: float, max_speed: float, offset: Vec3, look_at: Vec3
) -> tuple[DriverSpec, ...]:
    """Drivers of a pushed ball that is followed at a fixed offset (WMEval, BallRoller's camera).

    Args:
        newtons: force of a full action along x or y [N].
        max_speed: horizontal speed above which nothing pushes [m/s].
        offset: camera from the ball [m].
        look_at: looked-at point from the ball [m].
    """
    return (
        DriverSpec(
            kind="force",
            params={
                "body": "player",
                "axes": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
                "newtons": newtons,
                "max_speed": max_speed,
            },
        ),
        DriverSpec(
            kind="follow_camera",
            params={
                "camera": "follow",
                "body": "player",
                "offset": list(offset),
                "look_at": list(look_at),
                "mode": "rigid",
            },
        ),
    )
