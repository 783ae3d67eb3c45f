"""What Genesis is told of a textile, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pydantic import JsonValue

from wmeval.assets.gauge_mapping import genesis_textile
from wmeval.deformables import rest_shape
from wmeval.scene import Cloth, Meshes
from wmeval.sim.engines.genesis_cloth import OPTIONS
from wmeval.sim.engines.genesis_network import effective_spring


def genesis_textile_numbers(
    item: Cloth, meshes: Meshes, options: Mapping[str, JsonValue], hz: int
) -> dict[str, JsonValue]:
    """What Genesis is given, and as what spring an edge within its cloth then acts.

    Args:
        item: the cloth.
        meshes: by content hash.
        options: of the engine.
        hz: steps per second.

    Returns:
        Compliances [m/N] and [1/(N m)], iterations, relaxation, ``acts_as`` [N/m], to be compared
        with the stretch stiffness that was asked for, and ``regime``; or, with the choice
        ``textile`` "network", the stiffnesses that the springs have.
    """
    if options.get("textile") == "network":
        return {
            "stretch": item.stretch, "shear": item.shear, "bending": item.bending,
            "regime": "springs of the card's stiffness",
        }  # fmt: skip
    soft = genesis_textile(stretch=item.stretch, hinge=item.bending)
    rest = rest_shape(item, meshes)
    corners = rest.vertices[rest.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = float(np.linalg.norm(normals, axis=1).sum()) / 2
    defaults = {key: row[0] for key, row in OPTIONS.items()}
    number = {key: options.get(key, default) for key, default in defaults.items()}
    acts = effective_spring(
        soft.stretch_compliance,
        2 * len(rest.vertices) / (item.areal_density * area),
        1 / (hz * float(options.get("substeps", 1))),  # type: ignore[arg-type]
        int(number["stretch_iterations"]),  # type: ignore[arg-type]
        float(number["stretch_relaxation"]),  # type: ignore[arg-type]
    )
    return {
        "stretch_compliance": soft.stretch_compliance,
        "bending_compliance": soft.bending_compliance,
        **{key: number[key] for key in ("stretch_iterations", "bending_iterations",
                                        "stretch_relaxation", "bending_relaxation")},
        "acts_as": acts,
        "regime": "no shear stiffness",
    }  # fmt: skip
