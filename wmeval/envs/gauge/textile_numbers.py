"""What engines are told of a textile, by the mapping or by options, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from pydantic import JsonValue

from wmeval.assets.gauge_mapping import genesis_textile, membrane_stiffness
from wmeval.deformables import rest_shape
from wmeval.scene import Cloth, Meshes
from wmeval.sim.engines.genesis_cloth import OPTIONS
from wmeval.sim.engines.genesis_network import effective_spring
from wmeval.sim.engines.isaac import textile as isaac_textile
from wmeval.sim.engines.newton_deformables import mapped, textile

BY_OPTION = "option"
"""Regime of a membrane whose numbers a user or a grid gives in place of the mapping's."""


def newton_textile_numbers(
    item: Cloth, meshes: Meshes, options: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """What Newton is given.

    Args:
        item: the cloth.
        meshes: by content hash.
        options: of the engine; 0 leaves a number to the mapping.

    Returns:
        ``tri_ke``, ``tri_ka`` [N/m], ``edge_ke`` [N]; ``acts_as``, ``acts_as_shear`` [N/m]: the
        stretch and shear stiffness of that membrane, to be compared with what was asked for;
        ``regime`` of the membrane and, where options give any of the three, ``by_option``: which.
    """
    rest = rest_shape(item, meshes)
    given = {key: float(options.get(key) or 0) for key in ("tri_ke", "tri_ka", "edge_ke")}  # type: ignore[arg-type]
    own: list[JsonValue] = [key for key, value in given.items() if value]
    chosen = textile(item, rest, given)
    stretch, shear = membrane_stiffness(chosen["tri_ke"], chosen["tri_ka"])
    return {
        **chosen, "acts_as": stretch, "acts_as_shear": shear,
        "regime": (
            BY_OPTION if given["tri_ke"] or given["tri_ka"] else mapped(item, rest).regime
        ),
        **({"by_option": own} if own else {}),
    }  # fmt: skip


def isaac_textile_numbers(item: Cloth) -> dict[str, JsonValue]:
    """What Isaac Sim is given: moduli [Pa], Poisson's ratio, and its regime by eq. 6."""
    chosen = isaac_textile(item)
    return {
        "young": chosen.young, "poisson": chosen.poisson.value,
        "poisson_given": chosen.poisson.given, "bend": chosen.surface_bend_stiffness,
        "regime": chosen.poisson.regime,
    }  # fmt: skip


def genesis_textile_numbers(
    item: Cloth, meshes: Meshes, options: Mapping[str, JsonValue], dt: Fraction
) -> dict[str, JsonValue]:
    """What Genesis is given, and as what spring an edge within its cloth then acts.

    Args:
        item: the cloth.
        meshes: by content hash.
        options: of the engine.
        dt: substep [s].

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
        float(dt) / float(options.get("substeps", 1)),  # type: ignore[arg-type]
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
