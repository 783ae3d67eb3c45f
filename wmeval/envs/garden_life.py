"""What moves in WanderingGarden: the player, visitors, birds, particles and the wind."""

from __future__ import annotations

import math

import numpy as np
from pydantic import JsonValue

from wmeval.assets import garden
from wmeval.assets.foliage import lump
from wmeval.assets.mannequin import SKELETON, mannequin
from wmeval.envs.garden_court import (
    PLAYER_HEIGHT,
    PLAYER_RADIUS,
    PLAYER_START,
    VISITOR_RADIUS,
    Builder,
    grounds,
    landmarks,
    plantings,
    woods,
)
from wmeval.scene import Capsule, Collision, Cylinder, Vec3, Visual
from wmeval.sim.protocol import DriverSpec


def player(b: Builder) -> None:
    """The capsule that walks."""
    shape = Capsule(radius=PLAYER_RADIUS, height=PLAYER_HEIGHT)
    visual = Visual(shape=shape, material="capsule")
    b.add("player", "player", [visual], PLAYER_START, moving=True, solid=[Collision(shape=shape)])


VISITORS: tuple[tuple[float, tuple[tuple[float, float], ...]], ...] = (
    # Speed [m/s] and closed walk (x, y) [m]: around the fountain; along the south walk and back.
    (1.15, tuple((3.9 * math.cos(0.2 * math.pi * k), 3.0 + 3.9 * math.sin(0.2 * math.pi * k))
                 for k in range(10))),
    (1.35, ((0.65, -8.3), (0.75, -5.5), (0.85, -2.6), (3.4, -0.2), (4.5, 3.0), (3.0, 6.5),
            (0.0, 7.6), (-3.0, 6.5), (-4.5, 3.0), (-3.4, -0.2), (-0.85, -2.6), (-0.75, -5.5),
            (-0.65, -8.3), (0.0, -9.1))),
)  # fmt: skip


def visitors(b: Builder, rng: np.random.Generator) -> list[DriverSpec]:
    """Two strollers: a body that keeps others off, and the limbs of a mannequin that walks."""
    drivers = []
    for i, (speed, walk) in enumerate(VISITORS):
        stature = (1.72, 1.8)[i]
        shape = Cylinder(radius=VISITOR_RADIUS, height=stature)
        name = f"visitor_{i}"
        points: list[JsonValue] = [[x, y, stature / 2] for x, y in walk]
        b.add(name, "visitor", [], (*walk[0], stature / 2), moving=True,
              solid=[Collision(shape=shape)])  # fmt: skip
        drivers.append(
            DriverSpec(
                kind="spline",
                params={
                    "body": name,
                    "points": points,
                    "speed": speed,
                    "start": float(rng.uniform()),
                },
            )
        )
        figure = mannequin(f"visitor_{i}", f"visitor_{i}_joints", stature=stature)
        b.meshes.update(figure.meshes)
        for bone in SKELETON:
            x, y, z = figure.positions[bone.name]
            b.add(f"{name}_{bone.name}", "limb", figure.visuals[bone.name],
                  (walk[0][0] + x, walk[0][1] + y, z), moving=True)  # fmt: skip
        drivers.append(
            DriverSpec(
                kind="gait",
                params={
                    "root": name,
                    "prefix": f"{name}_",
                    "modal": f"{name}_gait",
                    "ground": stature / 2,
                    "stature": stature,
                },
            )
        )
    return drivers


BIRDS = 12


def birds(b: Builder, rng: np.random.Generator) -> DriverSpec:
    """A flock over the court."""
    parts = garden.bird()
    body, wing = (b.mesh(parts[name]) for name in ("body", "wing"))
    names, wings = [], []
    for i in range(BIRDS):
        names.append(f"bird_{i:02d}")
        b.add(
            names[-1], "bird", [Visual(shape=body, material="feathers")], (0, 0, 9.0), moving=True
        )
        pair = (f"bird_{i:02d}_wing_left", f"bird_{i:02d}_wing_right")
        for name in pair:
            b.add(name, "wing", [Visual(shape=wing, material="feathers")], (0, 0, 9.0), moving=True)
        wings.append(list(pair))
    return DriverSpec(
        kind="boids",
        params={
            "birds": list(names),
            "wings": [list(pair) for pair in wings],
            "hinge": [0.02, 0.03, 0.02],
            "centre": [0.0, 6.0, 8.0],
            "half": [17.0, 15.0, 3.2],
            "obstacles": [[-7.6, 9.6, 6.2, 4.6], [11.0, 6.6, 5.8, 2.6], [13.6, 8.8, 5.8, 2.6]],
            "seed": int(rng.integers(2**31)),
        },
    )


PARTICLES: tuple[tuple[str, int, str, Vec3, dict[str, JsonValue]], ...] = (
    # role, slots, material, radii of a particle [m], parameters of the driver
    ("petal", 24, "petal", (0.045, 0.032, 0.01), {
        "motion": "fall", "low": [-14.2, -10.8, 2.3], "high": [-7.6, -3.8, 3.7],
        "velocity": [0.35, 0.2, -0.75], "spread": [0.3, 0.3, 0.2], "period": 6.0, "life": 5.0,
        "swing": 0.16, "rate": 0.55, "spin": 4.0, "floor": 0.02}),
    ("petal", 12, "maple_leaves", (0.06, 0.05, 0.008), {
        "motion": "fall", "low": [7.6, -4.6, 2.4], "high": [10.6, -1.6, 4.2],
        "velocity": [0.3, 0.15, -0.85], "spread": [0.3, 0.3, 0.2], "period": 7.0, "life": 5.0,
        "swing": 0.2, "rate": 0.5, "spin": 4.0, "floor": 0.02}),
    ("drop", 20, "drop", (0.022, 0.022, 0.03), {
        "motion": "jet", "low": [-0.02, 2.98, 1.78], "high": [0.02, 3.02, 1.8],
        "velocity": [0.0, 0.0, 1.9], "spread": [0.62, 0.62, 0.15], "period": 0.82, "life": 0.82,
        "floor": 0.46}),
    ("mote", 10, "mote", (0.025, 0.025, 0.025), {
        "motion": "drift", "low": [6.4, -12.2, 0.5], "high": [12.6, -6.4, 1.7], "period": 9.0,
        "life": 6.5, "swing": 0.55, "rate": 0.14, "spin": 0.6}),
)  # fmt: skip


def particles(b: Builder, rng: np.random.Generator) -> list[DriverSpec]:
    """Petals, leaves, drops and motes: fixed pools."""
    drivers = []
    for k, (role, count, look, radii, params) in enumerate(PARTICLES):
        shape = b.mesh(lump(31 + k, radii, level=0, bumps=0.1, metres=0.2))
        names = [f"{role}_{k}_{i:02d}" for i in range(count)]
        for name in names:
            b.add(name, role, [Visual(shape=shape, material=look)], (0, 0, -5.0), moving=True,
                  active=False)  # fmt: skip
        seed = int(rng.integers(2**31))
        drivers.append(
            DriverSpec(kind="particles", params={**params, "bodies": list(names), "seed": seed})
        )
    return drivers


def wind(b: Builder, rng: np.random.Generator) -> DriverSpec:
    """The wind in all boughs: higher and further out ones move more."""
    sway, shift = [], []
    for name, height, outer in b.boughs:
        reed = name.startswith("reeds")
        stiff = 0.35 if name.startswith("cypress") else 1.0
        sway.append(9.0 if reed else stiff * (1.2 + 3.2 * outer))
        shift.append(0.0 if reed else stiff * 0.016 * height * outer)
    return DriverSpec(
        kind="wind",
        params={
            "bodies": [name for name, _, _ in b.boughs],
            "sway_deg": sway,
            "shift": shift,
            "heading_deg": float(rng.uniform(0, 360)),
            "speed": 4.5,
            "seed": int(rng.integers(2**31)),
        },
    )


def court(rng: np.random.Generator) -> tuple[Builder, tuple[DriverSpec, ...]]:
    """Everything in the court, and all that moves it but the player's driver.

    Args:
        rng: of the plantings, the visitors' places, birds, particles and wind.
    """
    b = Builder()
    player(b)
    grounds(b)
    landmarks(b)
    woods(b)
    plantings(b, rng)
    walks = visitors(b, rng)
    return b, (*walks, birds(b, rng), *particles(b, rng), wind(b, rng))
