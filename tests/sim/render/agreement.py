"""What two renderers of one state must have in common."""

from __future__ import annotations

import numpy as np
from raster_scene import angle_deg, near_edge


def near_crease(layers, *, jump=0.05, bend_deg=10.0):
    """Pixels beside a step in depth or a bend of the surface, where the pixel's centre decides."""
    depth, normals = layers["depth"], layers["normals"]
    finite = np.isfinite(depth)
    z = np.where(finite, depth, 1e6)
    out = np.zeros(depth.shape, bool)
    for axis in (0, 1):
        for step in (1, -1):
            other = np.roll(z, step, axis)
            out |= np.abs(other / z - 1) > jump
            out |= angle_deg(normals, np.roll(normals, step, axis)) > bend_deg
    out[:1] = out[-1:] = True
    out[:, :1] = out[:, -1:] = True
    return out


def apart_from_edges(here, there):
    """Pixels that show one surface, and no edge of an instance or crease beside them, in both."""
    edge = near_edge(here["ids"]) | near_edge(there["ids"])
    clear = ~(edge | near_crease(here) | near_crease(there))
    return clear & np.isfinite(here["depth"]) & np.isfinite(there["depth"])


def assert_same_labels(here, there):
    """Masks but for a pixel beside their edges; depth to 1e-3, normals to a degree elsewhere."""
    for name in ("ids", "glass_ids"):
        if name in here:
            apart = here[name] != there[name]
            assert not (apart & ~near_edge(here[name])).any(), name
    smooth = apart_from_edges(here, there)
    assert smooth.mean() > 0.2
    gap = np.abs(there["depth"][smooth] / here["depth"][smooth] - 1)
    assert np.quantile(gap, 0.999) < 1e-3
    angle = angle_deg(here["normals"], there["normals"])[smooth]
    assert np.quantile(angle, 0.995) < 1.0
    np.testing.assert_array_equal(np.isinf(there["depth"]), there["normals"].any(-1) == 0)
