"""Where a camera goes: what camera-controlled candidates are driven by when a regime turns it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.records import WorldLog

F8 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CameraPath:
    """Where the camera of a view goes while a regime turns it (`camera_motion`).

    Attributes:
        dt: substep of the reference [s].
        substeps: (N,) states that are known, ascending.
        poses: (N, 4, 4) ``T_world_camera`` of each.
    """

    dt: Fraction
    substeps: NDArray[np.int64]
    poses: F8

    @classmethod
    def of_log(cls, log: WorldLog, camera: int) -> CameraPath:
        """The path of one camera of a log."""
        return cls(log.state.dt, log.state.substep, log.cameras.T_world_camera[:, camera])

    @classmethod
    def at_rest(cls, env: Any) -> CameraPath | None:
        """The path in closed form from an environment at its state 0, for bodies that stay at rest.

        None where no regime turns a camera.
        """
        motion = getattr(env, "camera_motion", None)
        if motion is None:
            return None
        from wmeval.sim.drivers.camera_motion import yaw_deg, yawed

        log, dt = env.log, env.clock.dt
        base = log.cameras.T_world_camera[-1, env.camera_index(motion.camera)].ravel().tolist()
        pivot = motion.point
        if motion.body is not None:
            pivot = tuple(log.state.position[-1, log.state.body(motion.body)].tolist())
        count = int(motion.legs[-1].end / dt) + 1
        poses = [yawed(base, yaw_deg(motion.legs, k * float(dt)), pivot) for k in range(count)]
        return cls(dt, np.arange(count), np.array(poses).reshape(count, 4, 4))

    def at(self, time: Fraction) -> F8:
        """Pose (4, 4) of the state shown at a time [s]; after the last one, the last."""
        state = int((time / self.dt + Fraction(1, 2)).__floor__())
        row = int(np.searchsorted(self.substeps, min(state, int(self.substeps[-1]))))
        if self.substeps[row] != min(state, int(self.substeps[-1])):
            raise UserError(f"camera path: the state at {time} s is not known")
        return np.asarray(self.poses[row])

    def between(self, start: Fraction, end: Fraction) -> F8:
        """Pose (4, 4) of the camera at ``end`` in the camera at ``start``."""
        first, last = self.at(start), self.at(end)
        out = np.eye(4)
        out[:3, :3] = first[:3, :3].T @ last[:3, :3]
        out[:3, 3] = first[:3, :3].T @ (last[:3, 3] - first[:3, 3])
        return out
