"""A setting of two things, a floor and a bare slab as the support, in place of the rooms."""

from __future__ import annotations

import math

import wmeval.assets.settings
from wmeval.assets.cards import SettingCard, library
from wmeval.assets.settings.stage import Setting
from wmeval.clock import SceneClock
from wmeval.envs.rigidbench import place
from wmeval.envs.rigidbench.physics import FPS, SUBSTEPS
from wmeval.envs.rigidbench.rows import Row
from wmeval.envs.rigidbench.sample import Sample
from wmeval.records import WorldLog
from wmeval.scene import Body, Box, Collision, Material, Sky, Sun, Texture, Visual
from wmeval.sim.protocol import Probe, WorldSpec
from wmeval.sim.world import LocalWorld

CARDS = library()
STONE = Material(
    name="setting/stone",
    texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5), (0.4, 0.4, 0.4))),
)


def block(name: str, role: str, instance: int, half: tuple[float, float, float], **at) -> Body:
    """A block whose upper side is level with its position."""
    shape, down = Box(half_extents=half), (0.0, 0.0, -half[2])
    return Body(
        name=name, role=role, motion="static", instance=instance,
        collision=(Collision(shape=shape, position=down),),
        visuals=(Visual(shape=shape, material=STONE.name, position=down),), **at,
    )  # fmt: skip


def build(card: SettingCard) -> Setting:
    """The plain setting of any card."""
    bodies = [block("ground", "ground", 0, (6, 6, 0.05))]
    for name, s in card.surfaces.items():
        a = math.radians(s.long_axis_deg) / 2
        bodies.append(
            block(
                f"support:{name}", "support", 65000, (s.size[0] / 2, s.size[1] / 2, 0.025),
                position=s.center, quaternion_wxyz=(math.cos(a), 0.0, 0.0, math.sin(a)),
            )
        )  # fmt: skip
    sun = Sun(direction=(0.3, 0.4, -0.8660254))
    return Setting(tuple(bodies), (STONE,), {}, sun, Sky(), {})


def use_plain_settings() -> None:
    """From now on in this process every setting is the plain one."""
    known = dict.fromkeys(CARDS.settings, "plain_setting:build")
    wmeval.assets.settings.SETTINGS = known
    place._built_place.cache_clear()


def row(task: str, seed: int = 0, *, scene: str = "modern_luxury_kitchen", objects=()) -> Row:
    """A row of a task on a large support."""
    return Row(
        sample_id=f"{task}-{seed}",
        scene_id=scene,
        task_type=task,
        surface_name=next(iter(CARDS.settings[scene].surfaces)),
        seed=seed,
        split="train",
        objects=objects or CARDS.splits.train.objects,
    )


def spec_of(sample: Sample, scene=None) -> WorldSpec:
    """Its world."""
    from fractions import Fraction

    clock = SceneClock(Fraction(1, FPS * SUBSTEPS), Fraction(1, FPS))
    return WorldSpec(
        scene or sample.scene, sample.meshes, sample.drivers, clock, sample.rules,
        engine=sample.physics.engine, config=sample.config,
    )  # fmt: skip


def simulate(sample: Sample, frames: int = 48, scene=None) -> WorldLog:
    """Every substep of a clip with its contacts."""
    world = LocalWorld(spec_of(sample, scene))
    log = WorldLog.concatenate(
        [world.reset(), world.advance((), frames * SUBSTEPS, Probe("substeps", True))]
    )
    world.close()
    return log
