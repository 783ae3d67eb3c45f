"""Why PyBullet runs no textiles and foams here: what its own soft bodies give of what is asked.

A strip and a bar of the conformance suite hang by their upper ends, under the suite's gravity, and
longer by w L^2 / 2 K_s and rho g L^2 / 2 E. PyBullet's sheets of springs have one stiffness for
stretch and shear; its neo-Hookean solids take Lame's two numbers.
"""

import numpy as np
import pybullet
import pytest

from wmeval.assets.gauge_cards import families
from wmeval.deformables import rest_shape
from wmeval.eval.conformance import CHECKS


def hung(path, scene, mass, hz, **how):
    """How much longer a body is that hangs by its upper end [m]: mean over a quarter second."""
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.resetSimulation(pybullet.RESET_USE_DEFORMABLE_WORLD, physicsClientId=client)
        pybullet.setGravity(*scene.gravity, physicsClientId=client)
        pybullet.setTimeStep(1 / hz, physicsClientId=client)
        made = pybullet.loadSoftBody(
            str(path), mass=mass, collisionMargin=1e-4, useSelfCollision=0, useBendingSprings=0,
            physicsClientId=client, **how,
        )  # fmt: skip

        def heights():
            _, nodes = pybullet.getMeshData(
                made, -1, flags=pybullet.MESH_DATA_SIMULATION_MESH, physicsClientId=client
            )
            return np.array(nodes)[:, 2]

        start = heights()
        low = start < start.min() + 1e-6
        for node in np.flatnonzero(start > start.max() - 1e-6).tolist():
            pybullet.createSoftBodyAnchor(made, node, -1, -1, physicsClientId=client)
        later = []
        for step in range(hz // 2):
            pybullet.stepSimulation(physicsClientId=client)
            if step >= hz // 4 and step % 5 == 0:
                later.append(heights()[low].mean())
        return start[low].mean() - np.mean(later)
    finally:
        pybullet.disconnect(client)


def reasons(kind):
    cards = [c for c in families().values() if c.engines["bullet"].status == "not_run"]
    return {c.engines["bullet"].reason for c in cards if c.kind == kind}


def test_a_bar_has_two_thirds_of_the_modulus_asked_as_the_cards_say(tmp_path):
    scene = CHECKS["bar_stretch"].scene()
    bar = scene.deformables[0]
    rest = rest_shape(bar, {})
    rows = ["# vtk DataFile Version 2.0", "bar", "ASCII", "DATASET UNSTRUCTURED_GRID"]
    rows += [f"POINTS {len(rest.vertices)} float"]
    rows += [" ".join(map(repr, v)) for v in rest.vertices.tolist()]
    count = len(rest.tetrahedra)
    rows += [f"CELLS {count} {5 * count}"]
    rows += [" ".join(map(str, (4, *t))) for t in rest.tetrahedra.tolist()]
    rows += [f"CELL_TYPES {count}", *["10"] * count]
    path = tmp_path / "bar.vtk"
    path.write_text("\n".join(rows) + "\n")
    weight = bar.density * -scene.gravity[2]
    size = np.ptp(rest.vertices, axis=0)
    shares = []
    for asked in (bar.youngs_modulus, 2 * bar.youngs_modulus):
        shear = asked / 2 / (1 + bar.poisson_ratio)
        bulk = 2 * shear * bar.poisson_ratio / (1 - 2 * bar.poisson_ratio)
        longer = hung(
            path, scene, bar.density * size.prod(), 1800, useNeoHookean=1, NeoHookeanMu=shear,
            NeoHookeanLambda=bulk, NeoHookeanDamping=0.01,
        )  # fmt: skip
        shares.append(weight * size[2] ** 2 / 2 / longer / asked)
    # Linear in what is asked, and the bar of the suite must be within a tenth.
    assert shares == pytest.approx([0.677, 0.677], abs=0.01)
    told = f"its solids give {np.mean(shares):.2f} of the modulus asked"
    assert all(told in reason for reason in reasons("soft"))
    assert reasons("soft")


def test_a_sheet_of_springs_is_stiffer_than_asked_as_the_cards_say(tmp_path):
    scene = CHECKS["cloth_stretch"].scene()
    strip = scene.deformables[0]
    rest = rest_shape(strip, {})
    rows = [" ".join(["v", *map(repr, v)]) for v in rest.vertices.tolist()]
    rows += [" ".join(["f", *(str(i + 1) for i in t)]) for t in rest.triangles.tolist()]
    path = tmp_path / "strip.obj"
    path.write_text("\n".join(rows) + "\n")
    size = np.ptp(rest.vertices, axis=0)
    length, width = size[2], size[:2].max()
    weight = strip.areal_density * -scene.gravity[2]
    shares = []
    for asked, hz in ((20.0, 1800), (100.0, 7200)):
        longer = hung(
            path, scene, strip.areal_density * length * width, hz, useMassSpring=1, useNeoHookean=0,
            springElasticStiffness=asked, springDampingStiffness=0.001,
            springDampingAllDirections=0,
        )  # fmt: skip
        shares.append(weight * length**2 / 2 / longer / asked)
    assert shares == pytest.approx([1.3, 1.3], abs=0.05)
    told = f"its springs give {np.mean(shares):.1f} of the stiffness asked"
    assert all(told in reason for reason in reasons("textile"))
    assert reasons("textile")
