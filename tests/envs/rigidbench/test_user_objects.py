"""A user's own object, off centre and askew, from a folder of cards: its inertia is its own."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import trimesh
from plain_setting import simulate
from test_task_physics import impulses_on

from wmeval.conventions import quaternion_to_matrix
from wmeval.envs import make_environment
from wmeval.envs.rigidbench.sample import ACTIVE
from wmeval.errors import UserError

EDGES = np.array([[0.12, 0.0, 0.0], [0.05, 0.08, 0.0], [0.03, -0.02, 0.06]])
"""Edges of a skewed box [m]: none of its axes is a principal one."""
MASS = 0.3
CARD = """id: skew
name: Skew
asset: {{source: file, path: {path}, scale: {scale}}}
physics: {{mass: 0.3, friction: 0.5, restitution: 0.2}}
tags: [all]
"""


def skewed_box() -> trimesh.Trimesh:
    mesh = trimesh.creation.box((1.0, 1.0, 1.0))
    mesh.vertices = (mesh.vertices + 0.5) @ EDGES + [3.0, -1.0, 0.5]
    return mesh


def inertia_of(edges: np.ndarray, mass: float) -> np.ndarray:
    """Of a parallelepiped about its centre: its second moments are m/12 sum of e e^T."""
    second = mass / 12 * np.einsum("ki,kj->ij", edges, edges)
    return np.trace(second) * np.eye(3) - second


def folder_of(root: Path, path: str, scale: float = 1.0) -> str:
    (root / "objects").mkdir(exist_ok=True)
    (root / "objects" / "skew.yaml").write_text(CARD.format(path=path, scale=scale))
    return str(root)


@pytest.mark.parametrize("suffix", ["obj", "glb"])
def test_it_tumbles_as_its_own_inertia_says(tmp_path: Path, suffix: str) -> None:
    folder = folder_of(tmp_path, f"skew.{suffix}", 0.5)
    mesh = skewed_box()
    mesh.vertices *= 2.0
    if suffix == "glb":  # y is up there
        mesh.vertices = mesh.vertices[:, [0, 2, 1]] * [1, 1, -1]
    mesh.export(tmp_path / "objects" / f"skew.{suffix}")
    env = make_environment("FreeFall", assets=folder)
    env.reset(seed=3, options={"objects": ["skew"], "turn_deg": 40.0})
    x = env.sample
    env.close()
    body = x.scene.bodies[x.scene.index("falling")]
    assert body.mass == MASS
    # It stands as in its file, turned about the vertical, its box where the layout says.
    angle = math.radians(x.turn_deg)
    turned = np.array(
        [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]]
    )
    own = quaternion_to_matrix(np.array(body.quaternion_wxyz))
    seen = np.concatenate([x.meshes[v.shape.sha256].vertices for v in body.visuals]) @ own.T
    corners = np.array(list(np.ndindex(2, 2, 2))) - 0.5
    expected = corners @ EDGES @ turned.T
    nearest = np.linalg.norm(seen[:, None] - expected[None], axis=2).min(axis=1)
    assert nearest.max() < 1e-5
    # The first touch turns it by its inertia, which has products about every upright axis.
    upright = turned @ inertia_of(EDGES, MASS) @ turned.T
    log = simulate(x)
    i = x.scene.index("falling")
    _, moment = impulses_on(log, i)
    first = int(np.argmax(np.abs(moment).max(axis=1) > 0))
    assert first > 100
    assert not log.state.angular_velocity[first, i].any()
    given = np.linalg.solve(upright, moment[first])
    assert np.linalg.norm(given) > 1.0
    np.testing.assert_allclose(log.state.angular_velocity[first + 1, i], given, rtol=2e-3)
    # Wrong by far without the products of inertia.
    plain = moment[first] / np.diag(upright)
    assert np.linalg.norm(plain - given) > 0.05 * np.linalg.norm(given)
    assert [b.name for b in x.scene.bodies if b.role == ACTIVE] == ["falling"]


def test_open_and_tangled_meshes_collide_as_their_hulls(tmp_path: Path) -> None:
    """Holes, a doubled face and a loose sheet: the hull is the same."""
    whole = skewed_box()
    folder = folder_of(tmp_path, "skew.obj")
    states = []
    for faces in (whole.faces, np.concatenate([whole.faces[2:], whole.faces[4:5], [[0, 3, 6]]])):
        trimesh.Trimesh(whole.vertices, faces, process=False).export(
            tmp_path / "objects" / "skew.obj"
        )
        env = make_environment("FreeFall", assets=folder)
        env.reset(seed=3, options={"objects": ["skew"], "turn_deg": 40.0, "azimuth_deg": 0.0})
        states.append(simulate(env.sample, frames=20).state.position)
        env.close()
        from wmeval.envs.rigidbench import shapes

        shapes._built_model.cache_clear()
        shapes._object_shape.cache_clear()
    np.testing.assert_allclose(states[0], states[1], atol=1e-6)


def write_nothing(path: Path) -> None:
    pass


def write_nan(path: Path) -> None:
    skewed_box().export(path)
    lines = path.read_text().splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("v "))
    lines[first] = "v nan 0 0"
    path.write_text("\n".join(lines))


def write_sheet(path: Path) -> None:
    trimesh.Trimesh([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]], [[0, 1, 2]]).export(path)


def write_plain(path: Path) -> None:
    skewed_box().export(path)


@pytest.mark.parametrize(
    ("write", "scale", "message"),
    [
        (write_nothing, 1.0, r"object 'skew': .*skew.obj: no such file"),
        (write_nan, 1.0, r"object 'skew': .*skew.obj: some vertices are not finite"),
        (write_sheet, 1.0, r"object 'skew': skew.obj: .*no volume"),
        (write_plain, 100.0, r"object 'skew': .*it is .* m large.*set the asset's scale"),
        (write_plain, 0.01, r"object 'skew': .*it is .* m large.*set the asset's scale"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    tmp_path: Path, write, scale: float, message: str
) -> None:
    folder = folder_of(tmp_path, "skew.obj", scale)
    write(tmp_path / "objects" / "skew.obj")
    env = make_environment("FreeFall", assets=folder)
    with pytest.raises(UserError, match=message) as error:
        env.reset(seed=3, options={"objects": ["skew"]})
    assert "\n" not in str(error.value)
