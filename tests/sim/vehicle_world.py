"""The car of RacingCar on a plain field, for tests of its physics."""

from fractions import Fraction

import numpy as np

from wmeval.clock import SceneClock
from wmeval.envs.racing_car import chassis, vehicle_params, wheel_bodies
from wmeval.scene import Body, Box, Camera, Collision, Scene, Sun
from wmeval.sim.drivers.vehicle import modal_state
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, Probe, WorldSpec
from wmeval.sim.world import LocalWorld

G = 9.81
DT = 1 / 240
EVERY = Probe("substeps")


def field_world(*, velocity=(0.0, 0.0, 0.0), height=0.5, gravity=(0, 0, -G), ground=True, **params):
    """A world of one car in the middle of a large level field."""
    bodies = []
    if ground:
        shape = Box(half_extents=(3000.0, 3000.0, 1.0))
        bodies.append(
            Body(name="field", role="ground", motion="static", instance=1, position=(0, 0, -1.0),
                 collision=(Collision(shape=shape),))
        )  # fmt: skip
    car = chassis((0.0, 0.0, height), linear_velocity=velocity, visuals=())
    wheels = [b.model_copy(update={"visuals": ()}) for b in wheel_bodies((0.0, 0.0, height))]
    scene = Scene(
        name="field", gravity=gravity, bodies=(*bodies, car, *wheels), materials=(),
        cameras=(Camera(name="c", position=(0, -9, 3), target=(0, 0, 0)),),
        sun=Sun(direction=(0, 0, -1)), modal=modal_state(),
    )  # fmt: skip
    spec = WorldSpec(
        scene, {}, (DriverSpec(kind="vehicle", params=vehicle_params(**params)),),
        SceneClock(Fraction(1, 240), Fraction(1, 60)), EventRules(), config=EngineConfig(),
    )  # fmt: skip
    world = LocalWorld(spec)
    world.reset()
    return world


class Drive:
    """What the car did: arrays over substeps."""

    def __init__(self, world, *phases):
        """Phases are (seconds, (steering, throttle, brake))."""
        self.scene = world.spec.scene
        car = self.scene.index("car")
        logs = [world.log()]
        for seconds, action in phases:
            logs.append(world.advance(action, world.substep + round(seconds * 240), EVERY))
        state = [log.state for log in logs]
        self.time = np.concatenate([s.substep for s in state]) * DT
        self.position = np.concatenate([s.position[:, car] for s in state])
        self.velocity = np.concatenate([s.linear_velocity[:, car] for s in state])
        self.turning = np.concatenate([s.angular_velocity[:, car] for s in state])
        self.attitude = np.concatenate([s.quaternion_wxyz[:, car] for s in state])
        self.modal = {
            name: np.concatenate([s.modal[name] for s in state]) for name in state[0].modal
        }

    @property
    def speed(self):
        return np.linalg.norm(self.velocity, axis=1)
