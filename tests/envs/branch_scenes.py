"""Small scenes with branches, with pictures, and without actions, for tests of the base."""

from fractions import Fraction

import numpy as np

from wmeval.envs import ENVIRONMENTS, EnvironmentRow
from wmeval.envs.base import Composition, WorldEnv
from wmeval.envs.parts import ball, ball_drivers, block, material
from wmeval.scene import Camera, Scene, Sky, Sun
from wmeval.sim.protocol import DriverSpec, EventRules

OFFSET, LOOK_AT = (0.0, -6.0, 3.0), (0.0, 0.0, 0.0)


def compose(actions=True):
    """A ball on a floor, pushed along x and y, lifted by the third channel."""
    scene = Scene(
        name="Branches",
        bodies=(
            block("floor", "floor", 1, material="grey", half=(20.0, 20.0, 0.5),
                  position=(0.0, 0.0, -0.5), friction=1.0),
            ball("player", "player", 2, material="red", radius=0.5, mass=1.0,
                 position=(0.0, 0.0, 0.5), friction=0.5),
            block("post", "post", 3, material="red", half=(0.3, 0.3, 1.0),
                  position=(2.0, 3.0, 1.0)),
        ),
        materials=(
            material("grey", "checker", (0.3, 0.3, 0.3), (0.5, 0.5, 0.5)),
            material("red", "checker", (0.8, 0.1, 0.1), (0.6, 0.1, 0.1)),
        ),
        cameras=(
            Camera(name="follow", position=OFFSET, target=(0.0, 0.0, 0.5)),
            Camera(name="static", position=(6.0, -9.0, 6.0), target=(0.0, 0.0, 0.5)),
            Camera(name="first", position=(0.0, 0.0, 1.2), target=(0.0, 1.0, 1.1)),
        ),
        sun=Sun(direction=(0.3, 0.4, -0.87)),
        sky=Sky(),
    )  # fmt: skip
    lift = DriverSpec(kind="force", params={
        "body": "player", "axes": [[0.0, 0.0, 1.0]], "actions": [2], "newtons": 30.0})  # fmt: skip
    push = ball_drivers(newtons=5.0, max_speed=10.0, offset=OFFSET, look_at=LOOK_AT)
    drivers = (*push, lift) if actions else push[1:]
    return Composition(scene, drivers, EventRules())


class Branches(WorldEnv):
    """Two continuous channels, two branches, and a picture."""

    ID = "WMEval/Branches-v0"
    PLAYER = "player"
    one_shot_channels = ("jump",)

    def _bounds(self):
        return np.full(3, -100.0, np.float32), np.full(3, 100.0, np.float32)

    def _compose(self, rng, options):
        return compose()

    def _observe(self, now):
        return np.array(now.pose(self._player)[0], np.float32)

    def _side_info(self, now, step):
        return {"height": now.pose(self._player)[0][2], "step": step}


class Inert(WorldEnv):
    """No actions and no player."""

    ID = "WMEval/Inert-v0"

    def _bounds(self):
        return np.full(3, -100.0, np.float32), np.full(3, 100.0, np.float32)

    def _compose(self, rng, options):
        return compose(actions=False)

    def _observe(self, now):
        return np.array(now.pose(1)[0], np.float32)

    def _terminated(self, now):
        return now.velocity(1)[0][2] > 1.0


def _row(cls, channels, branches, image):
    return EnvironmentRow(
        id=cls.ID, entry_point=f"branch_scenes:{cls.__name__}", dimensions=("controllability",),
        dt=Fraction(1, 240), control_period=Fraction(1, 60), max_steps=60, size=(96, 64),
        channels=channels, observation=3, termination="never", summary=cls.__doc__,
        branches=branches, image=image,
    )  # fmt: skip


ROWS = (
    _row(Branches, ("force_x", "force_z", "jump", "sprint"), ("jump", "sprint"), (48, 32)),
    _row(Inert, (), (), None),
)


def register():
    """Put both into the table and into Gymnasium's registry."""
    from wmeval.envs import register_all

    ENVIRONMENTS.update({row.id: row for row in ROWS})
    register_all()


def unregister():
    """Take them out again."""
    import gymnasium as gym

    for row in ROWS:
        ENVIRONMENTS.pop(row.id, None)
        gym.registry.pop(row.id, None)
