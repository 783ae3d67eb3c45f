"""Free bodies that never meet, each in an environment of Genesis of its own.

Genesis' cost of one scene grows with the square of its coordinates, and a scene of another number
of bodies is compiled anew; environments cost what they hold. So a scene of many like bodies that
lie far from one another, on what stands still, is built with one of them, as many times as there
are. What each does is what it would do alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Scene
from wmeval.sim.engines.stepped import Numbers, Put

OPTION = {"apart": (0.0, 0.0, 1.0)}
"""1: the scene's free bodies never meet."""
_OWN = ("name", "instance", "position", "quaternion_wxyz", "linear_velocity", "angular_velocity")
"""Fields by which bodies that are alike may differ."""


class Apart:
    """The environments of a scene.

    Args:
        scene: of single free bodies that are alike but for their states, and static ones.
        groups: its bodies that hang together, by number.
        motion: of every body.

    Raises:
        UserError: bodies are jointed, led, or not alike.
    """

    def __init__(
        self, scene: Scene, groups: Sequence[Sequence[int]], motion: Sequence[int]
    ) -> None:
        free = [g for g in groups if any(motion[i] == DYNAMIC for i in g)]
        self.bodies = [g[0] for g in free]
        still = [list(g) for g in groups if g not in free]
        wrong = next((g for g in free if len(g) > 1), None) or next(
            (g for g in still if any(scene.bodies[i].mass > 0 for i in g)), None
        )
        if wrong is not None or scene.joints or scene.deformables or not free:
            raise UserError(
                f"scene {scene.name!r}: option apart=1 of engine genesis is for free bodies among "
                "static ones without a mass, without joints and what bends: leave it out"
            )
        kinds = {
            scene.bodies[i].model_dump_json(exclude=set(_OWN)): i for i in reversed(self.bodies)
        }
        if len(kinds) > 1:
            first, other, *_ = (scene.bodies[i].name for i in sorted(kinds.values()))
            raise UserError(
                f"scene {scene.name!r}: bodies {first!r} and {other!r} are not alike, as option "
                "apart=1 of engine genesis wants them: leave it out"
            )
        self.groups = [*still, list(free[0])]
        self._row = {i: k for k, i in enumerate(self.bodies)}

    def begin(self, genesis: Any, solver: Any, entity: Any, link: Any) -> None:
        """Know the one that was built, in all its environments."""
        self._genesis, self._solver, self._link = genesis, solver, link
        self._coordinates = [entity.q_start + k for k in range(7)]
        self._speeds = [entity.dof_start + k for k in range(6)]

    def place(self, puts: Mapping[int, Put]) -> None:
        """Put bodies, all at once."""
        known = [i for i in puts if i in self._row]
        if not known:
            return
        rows = np.array([self._row[i] for i in known])
        poses = np.array([[*puts[i][0], *puts[i][1]] for i in known])
        speeds = np.array([joint_speeds(puts[i]) for i in known])
        self._solver.set_qpos(poses, self._coordinates, rows)
        self._solver.set_dofs_velocity(speeds, self._speeds, rows)

    def read(self, bodies: Sequence[int]) -> list[Numbers]:
        """Numbers of bodies, in order."""
        com = self._genesis.link_ref_frame.link_COM
        solver, at = self._solver, self._link.idx
        rows = [self._row[i] for i in bodies]
        poses, turns, linear, angular = (
            np.asarray(tensor)[rows, at]
            for tensor in (
                solver.get_links_pos(ref=com),
                solver.get_links_quat(),
                solver.get_links_vel(ref=com),
                solver.get_links_ang(),
            )
        )
        both: NDArray[np.float64] = np.concatenate(
            [poses, turns[:, [1, 2, 3, 0]], linear, angular], axis=1
        )
        out: list[Numbers] = both.tolist()
        return out


def joint_speeds(put: Put) -> list[float]:
    """Of a free joint: linear velocity, and the turning, which it keeps in the body's own frame."""
    _, quaternion, linear, angular = put
    if not any(angular):
        return [*linear, *angular]
    turned: list[float] = (quaternion_to_matrix(np.array(quaternion)).T @ angular).tolist()
    return [*linear, *turned]
