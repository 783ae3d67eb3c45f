"""Drivers by kind. A new driver is one new file and one row here."""

from __future__ import annotations

import importlib

from pydantic import ValidationError

from wmeval.errors import UserError
from wmeval.sim.protocol import Driver, DriverSpec

DRIVERS: dict[str, str] = {
    "force": "wmeval.sim.drivers.force:Force",
    "release": "wmeval.sim.drivers.release:Release",
    "follow_camera": "wmeval.sim.drivers.follow_camera:FollowCamera",
    "cue": "wmeval.sim.drivers.cue:Cue",
    "camera_motion": "wmeval.sim.drivers.camera_motion:CameraMotion",
    "vehicle": "wmeval.sim.drivers.vehicle:Vehicle",
    "road": "wmeval.sim.drivers.road:Road",
    "chase_camera": "wmeval.sim.drivers.chase_camera:ChaseCamera",
    "mounted_camera": "wmeval.sim.drivers.chase_camera:MountedCamera",
    "sun": "wmeval.sim.drivers.sun:Sun",
    "walking_orbit": "wmeval.sim.drivers.walking_orbit:WalkingOrbit",
    "boids": "wmeval.sim.drivers.boids:Boids",
    "first_person": "wmeval.sim.drivers.first_person:FirstPerson",
    "particles": "wmeval.sim.drivers.particles:Particles",
    "spline": "wmeval.sim.drivers.spline:Spline",
    "wind": "wmeval.sim.drivers.wind:Wind",
    "character": "wmeval.sim.drivers.character:Character",
    "gait": "wmeval.sim.drivers.gait:Gait",
    "bottle": "wmeval.sim.drivers.bottle:Bottle",
    "slosh": "wmeval.sim.drivers.slosh:Slosh",
    "imposed": "wmeval.sim.drivers.imposed:Imposed",
    "kick": "wmeval.sim.drivers.imposed:Kick",
    "torques": "wmeval.sim.drivers.torques:Torques",
}
"""Kind to "module:Class"; the class has a nested card ``Params`` and takes one of it."""


def make_driver(spec: DriverSpec) -> Driver:
    """The driver of a specification.

    Raises:
        UserError: no such kind, or parameters that its card refuses.
    """
    if spec.kind not in DRIVERS:
        raise UserError(f"no driver {spec.kind!r}; known: {', '.join(sorted(DRIVERS))}")
    module, attribute = DRIVERS[spec.kind].split(":")
    kind = getattr(importlib.import_module(module), attribute)
    try:
        params = kind.Params.model_validate(spec.params)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(x) for x in first["loc"]) or "params"
        raise UserError(f"driver {spec.kind!r}: {where}: {first['msg']}") from error
    driver: Driver = kind(params)
    return driver
