"""Kinematic supports that give way to one hard enough hit."""

from __future__ import annotations

from pydantic import Field

from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Card, Scene
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, Quat, SubstepView, Vec


class Release(Driver):
    """BeamDomino's pillars and slab: kinematic until the player hits a pillar hard.

    The supports stay kinematic until the first substep in which the striker touches one of the
    struck bodies with ``m v_n > impulse``, where v_n is the striker's approach speed along the
    contact normal BEFORE that substep. Then every released body becomes dynamic, at rest, and the
    striker gets the state back that it had before the substep, so that it hits bodies that can give
    way. The approach momentum, unlike the solver's impulse, does not depend on the phase of the
    contact within the substep.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            striker: name of the body that hits.
            struck: names of the bodies whose contact counts.
            released: names of the bodies that become dynamic.
            impulse: approach momentum m v_n [N s] that releases.
        """

        striker: str
        struck: tuple[str, ...] = Field(min_length=1)
        released: tuple[str, ...] = Field(min_length=1)
        impulse: float = Field(gt=0)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0, everything held."""
        names = self._params
        self._striker = body_index(scene, names.striker, "release")
        self._struck = [body_index(scene, n, "release") for n in names.struck]
        self._freed = [body_index(scene, n, "release") for n in names.released]
        for i in self._freed:
            if scene.bodies[i].mass <= 0:
                raise UserError(f"body {scene.bodies[i].name!r} cannot be released: give it a mass")
        self._mass = scene.bodies[self._striker].mass
        self._held = True

    def before(self, view: SubstepView) -> None:
        """Remember the striker's state."""
        if self._held:
            self._pose: tuple[Vec, Quat] = view.pose(self._striker)
            self._velocity: tuple[Vec, Vec] = view.velocity(self._striker)

    def after(self, view: SubstepView) -> None:
        """Release after a hard enough hit."""
        if not self._held:
            return
        striker = self._striker
        vx, vy, vz = self._velocity[0]
        for other in self._struck:
            for contact in view.contacts(striker, other):
                nx, ny, nz = contact.normal
                if -self._mass * (vx * nx + vy * ny + vz * nz) > self._params.impulse:
                    self._held = False
                    for body in self._freed:
                        view.set_motion(body, DYNAMIC)
                    view.set_state(striker, *self._pose, *self._velocity)
                    return
