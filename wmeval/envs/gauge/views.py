"""Cameras of GAUGE's scenes: about everything that is there, from where the clips look."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wmeval.scene import Camera, Vec3

F8 = NDArray[np.float64]

FOV_DEG = 30.0
_DEFAULT = (-62.0, 18.0)
_DIRECTIONS: dict[str, tuple[float, float]] = {
    # family: azimuth of the camera about the scene, from +x about z, and elevation [deg]
    "slope_contact": (-52.0, 20.0),
    "nonsmooth_contact": (-60.0, 26.0),
    "slope_slider": (-72.0, 16.0),
    "turntable": (-70.0, 34.0),
    "bouncing_ball": (-70.0, 12.0),
    "newtons_cradle": (-14.0, 12.0),
    "wall_breaking": (-104.0, 16.0),
    "pendulum": (-80.0, 8.0),
    "rope_winding": (-66.0, 16.0),
    "textile_stretching": (-130.0, 18.0),
    "textile_bending": (-72.0, 14.0),
    "textile_flinging": (-40.0, 14.0),
    "funnel": (-60.0, 13.0),
    "rotating_ball": (-60.0, 26.0),
    "tablecloth_pulling": (-108.0, 24.0),
    "foam_stretching": (40.0, 14.0),
    "foam_compressing": (40.0, 14.0),
    "foam_shearing": (40.0, 14.0),
    "foam_twisting": (40.0, 14.0),
    "foam_bending": (28.0, 14.0),
    "stick_stack": (-72.0, 12.0),
    "cantilever_beam": (18.0, 10.0),
}


def azimuth_of(family: str) -> float:
    """Where ``main`` stands about the scene, from +x about z [deg]."""
    return _DIRECTIONS.get(family, _DEFAULT)[0]


def cameras(family: str, points: F8) -> tuple[Camera, ...]:
    """``main`` as in the clips, ``static`` from the other side and farther, ``top``.

    Args:
        family: id of the card.
        points: (N, 3) what is to be seen, in the whole record [m].
    """
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    reach = float(np.linalg.norm(high - low)) / 2
    azimuth, elevation = _DIRECTIONS.get(family, _DEFAULT)
    near = reach / math.sin(math.radians(FOV_DEG) / 2)
    return (
        _camera("main", middle, azimuth, elevation, 1.02 * near),
        _camera("static", middle, azimuth + 48.0, elevation + 8.0, 1.35 * near),
        _camera("top", middle, azimuth, 86.0, 1.1 * near),
    )


def _camera(name: str, middle: F8, azimuth: float, elevation: float, distance: float) -> Camera:
    a, e = math.radians(azimuth), math.radians(elevation)
    away = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
    return Camera(
        name=name,
        position=_vec3(middle + distance * away),
        target=_vec3(middle),
        fov_y_deg=FOV_DEG,
        near=0.02,
        far=50.0,
    )


def _vec3(v: F8) -> Vec3:
    x, y, z = v.tolist()
    return (x, y, z)
