"""A liquid that deforms, in a glass that bends light: labels by rays, colours by inversion."""

from dataclasses import replace

import numpy as np
import pytest

from wmeval import conventions
from wmeval.envs.liquid_container import compose
from wmeval.errors import UserError
from wmeval.scene import Material, Texture
from wmeval.sim.render import labels, make_renderer
from wmeval.sim.render.deform import carry, locate, make_deformer
from wmeval.sim.render.pieces import start_state

pytestmark = pytest.mark.gl
MADE = compose()
SCENE = MADE.scene
BOTTLE, LIQUID, CAP = (SCENE.index(n) for n in ("bottle", "liquid", "cap"))
PARTS = [BOTTLE, LIQUID, CAP]
WIDTH, HEIGHT = 240, 132
LAYERS = ("rgb", "depth", "ids", "glass_ids", "normals", "shadow_ids")
DEFORM = SCENE.bodies[LIQUID].visuals[0].shape.deform
DEFORMER = make_deformer(DEFORM)


def instant(tilt_deg, wave, *, at=(0.0, 0.0, 0.06), axis=(0.3, 1.0, 0.2), camera=0):
    """The bottle tilted about an axis and lifted, its liquid waving by a slope."""
    state = start_state(SCENE, camera)
    q = conventions.axis_angle_quaternion(axis, np.radians(tilt_deg))
    turn = conventions.quaternion_to_matrix(q)
    position, quaternion = state.position.copy(), state.quaternion_wxyz.copy()
    position[PARTS] += at
    quaternion[PARTS] = q
    slopes = np.array([[wave, 0.3 * wave, 0], [-0.8 * wave, wave, 0], [0.5 * wave, 0, 0]])
    values = np.concatenate([turn[2], (slopes @ turn).ravel()])
    modal = {**state.modal, DEFORM.modal: values}
    return replace(state, position=position, quaternion_wxyz=quaternion, modal=modal)


INSTANTS = [instant(0, 0.0, at=(0, 0, 0)), instant(25, 0.25), instant(70, 0.1, at=(0.1, 0, 0.1))]


@pytest.fixture(scope="module")
def renderer():
    made = make_renderer("raster", SCENE, MADE.meshes)
    yield made
    made.close()


def rays(state):
    K = conventions.intrinsics(state.fov_y, WIDTH, HEIGHT)
    grid = conventions.pixel_grid(WIDTH, HEIGHT)
    ends = conventions.unproject(grid, np.ones(grid.shape[:2]), K, state.T_world_camera)
    eye = np.asarray(state.T_world_camera)[:3, 3]
    return eye, ends - eye


def posed(state, body, mesh):
    turn = conventions.quaternion_to_matrix(state.quaternion_wxyz[body])
    return mesh.vertices.astype(np.float64)[mesh.triangles] @ turn.T + state.position[body]


def hit(corners, eye, ray):
    """First triangle (F, 3, 3) that faces each ray (N, 3): distance, index, barycentrics."""
    a, u, v = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    n = np.cross(u, v)
    facing = ((eye - a) * n).sum(1) > 0
    numbers = np.flatnonzero(facing)
    a, u, v, n = a[facing], u[facing], v[facing], n[facing]
    # Rays eye + t d through a + s u + r v: three determinants, linear in d.
    to = eye - a
    over, ways = ((to * n).sum(1)), (np.cross(to, v), np.cross(u, to))
    best = np.full(len(ray), np.inf)
    face, weights = np.full(len(ray), -1), np.zeros((len(ray), 3))
    middle = corners.reshape(-1, 3).mean(axis=0)
    reach = np.linalg.norm(corners.reshape(-1, 3) - middle, axis=1).max()
    unit = ray / np.linalg.norm(ray, axis=1, keepdims=True)
    near = np.linalg.norm(np.cross(middle - eye, unit), axis=1) < reach
    chosen = np.flatnonzero(near)
    for start in range(0, len(chosen), 512):
        which = chosen[start : start + 512]
        d = ray[which]
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = -1.0 / (d @ n.T)
            t = over * inverse
            s, r = (d @ ways[0].T) * -inverse, (d @ ways[1].T) * -inverse
        good = (inverse > 0) & (s >= -1e-9) & (r >= -1e-9) & (s + r <= 1 + 1e-9)
        t = np.where(good, t, np.inf)
        k = t.argmin(axis=1)
        row = np.arange(len(d))
        best[which] = t[row, k]
        face[which] = np.where(np.isfinite(t[row, k]), numbers[k], -1)
        s, r = s[row, k], r[row, k]
        weights[which] = np.stack([1 - s - r, s, r], axis=1)
    return best, face, weights


def mesh_of(body):
    return MADE.meshes[SCENE.bodies[body].visuals[0].shape.sha256]


def liquid_at(state):
    return posed(state, LIQUID, DEFORMER.mesh(state.modal[DEFORM.modal]))


def inner(mask):
    """Pixels whose eight neighbours are in the mask, too."""
    out = mask.copy()
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            out &= np.roll(mask, (dy, dx), (0, 1))
    return out


@pytest.mark.parametrize("k", range(3))
def test_ids_depth_and_glass_are_what_rays_hit(renderer, k):
    state = INSTANTS[k]
    seen = renderer.draw(state, WIDTH, HEIGHT, LAYERS)
    eye, ray = rays(state)
    flat = ray.reshape(-1, 3)
    liquid = hit(liquid_at(state), eye, flat)[0].reshape(HEIGHT, WIDTH)
    cap = hit(posed(state, CAP, mesh_of(CAP)), eye, flat)[0].reshape(HEIGHT, WIDTH)
    glass = hit(posed(state, BOTTLE, mesh_of(BOTTLE)), eye, flat)[0].reshape(HEIGHT, WIDTH)
    expected = np.where((liquid < cap) & np.isfinite(liquid), 3, np.where(np.isfinite(cap), 4, 0))
    assert (expected == 3).sum() > 300
    wrong = np.where(np.isin(seen["ids"], [3, 4]), seen["ids"], 0) != expected
    assert wrong.mean() < 1e-4
    same = (seen["ids"] == 3) & (expected == 3)
    depth = seen["depth"][same]
    np.testing.assert_allclose(depth[inner(same)[same]], liquid[inner(same)], rtol=2e-5)
    behind = np.minimum(liquid, cap)
    in_front = np.isfinite(glass) & (glass < behind)
    assert ((seen["glass_ids"] == 2) != in_front).mean() < 3e-4
    assert 2 not in seen["ids"]
    assert not np.isin(seen["glass_ids"], [3, 4]).any()
    # The liquid lies in the glass: wherever it is seen without the cap, glass is before it.
    assert (seen["glass_ids"][inner(same)] == 2).all()
    length = np.linalg.norm(seen["normals"][same], axis=-1)
    np.testing.assert_allclose(length, 1, atol=1e-3)


def test_flow_of_the_liquid_follows_its_material(renderer):
    a, b = instant(20, 0.2), instant(27, -0.12, at=(0.03, 0.01, 0.08))
    instance = labels.instances(SCENE)
    first, second = (renderer.draw(s, WIDTH, HEIGHT, ("depth", "ids")) for s in (a, b))
    field = labels.flow(first["depth"], first["ids"], a, b, instance)
    mask = first["ids"] == 3
    eye, ray = rays(a)
    _, face, weights = hit(liquid_at(a), eye, ray[mask])
    there = np.einsum("nk,nkc->nc", weights, liquid_at(b)[face])
    K = conventions.intrinsics(b.fov_y, WIDTH, HEIGHT)
    pixels, _ = conventions.project(there, K, b.T_world_camera)
    expected = pixels - conventions.pixel_grid(WIDTH, HEIGHT)[mask]
    error = np.linalg.norm(field[mask] - expected, axis=-1)[face >= 0]
    assert np.quantile(error, 0.99) < 0.01
    assert np.abs(expected).max() > 4
    # The same surface point, drawn at b, lies at the depth that the flow says.
    hidden = labels.occlusion(
        first["depth"], first["ids"], a, second["depth"], second["ids"], b, instance
    )
    assert 0.3 < (~hidden[mask]).mean() <= 1
    rows, columns = np.nonzero(mask)
    some = np.arange(0, len(rows), 17)
    queries = np.stack([columns[some] + 0.5, rows[some] + 0.5], axis=1)
    found = labels.tracks(
        queries, 0, [a, b], [first["depth"], second["depth"]], [first["ids"], second["ids"]],
        instance,
    )  # fmt: skip
    np.testing.assert_allclose(found.pixels[:, 1], queries + field[mask][some], atol=2e-3, rtol=0)


def test_a_still_liquid_in_a_moving_bottle_moves_rigidly():
    values = instant(30, 0.1).modal[DEFORM.modal]
    points = DEFORMER.mesh(values).vertices[::5].astype(float)
    np.testing.assert_array_equal(carry(DEFORMER, points, values, values), points)
    corners = DEFORMER.mesh(values).vertices.astype(float)[DEFORMER.triangles]
    middles = corners.mean(axis=1)
    _, weights = locate(corners, middles)
    back = carry(DEFORMER, middles, values, instant(10, -0.1).modal[DEFORM.modal])
    again = carry(DEFORMER, back, instant(10, -0.1).modal[DEFORM.modal], values)
    assert np.quantile(np.linalg.norm(again - middles, axis=1), 0.99) < 1e-4
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("size", [(320, 176), (200, 110)])
def test_drawing_only_what_changed_gives_the_same_bits(size):
    """Also when nothing but the liquid moves."""
    cached = make_renderer("raster", SCENE, MADE.meshes, cached=True)
    plain = make_renderer("raster", SCENE, MADE.meshes, cached=False)
    states = [instant(0, 0.0), instant(0, 0.0), instant(0, 0.02), instant(0, 0.2)]
    states += [instant(3 * k, 0.05 * k, at=(0.02 * k, 0, 0.05)) for k in range(5)]
    for state in states:
        one, two = (r.draw(state, *size, LAYERS) for r in (cached, plain))
        for name in LAYERS:
            assert one[name].tobytes() == two[name].tobytes(), name
    cached.close()
    plain.close()


def striped(**liquid):
    """The scene on a floor that is dark for x < 0 and light for x > 0, without colour."""
    looks = []
    for m in SCENE.materials:
        if m.name == "floor":
            texture = Texture(builder="stripes", colors=((0.6, 0.6, 0.6), (0.05, 0.05, 0.05)))
            looks.append(Material(name="floor", texture=texture, uv_m=8.0, roughness=0.9))
        elif m.name == "liquid":
            looks.append(m.model_copy(update=liquid))
        else:
            looks.append(m)
    return SCENE.model_copy(update={"materials": tuple(looks)})


def test_liquid_shows_what_lies_behind_it_upside_down_and_empty_glass_does_not():
    made = make_renderer("raster", striped(), MADE.meshes)
    state = start_state(SCENE)
    seen = made.draw(state, 640, 352, ("rgb", "ids", "glass_ids"))
    made.close()
    light = seen["rgb"].astype(float).mean(axis=-1)
    rows, columns = np.nonzero(seen["ids"] == 3)
    middle = (columns.min() + columns.max()) // 2
    half = (columns.max() - columns.min()) // 2
    full = range(int(rows.min() + 0.5 * np.ptp(rows)), int(rows.min() + 0.8 * np.ptp(rows)))
    left = light[full][:, middle - int(0.6 * half) : middle - int(0.2 * half)]
    right = light[full][:, middle + int(0.2 * half) : middle + int(0.6 * half)]
    assert left.mean() > 1.4 * right.mean()
    empty = range(rows.min() - 45, rows.min() - 12)
    assert (seen["glass_ids"][empty, middle] == 2).all()
    left = light[empty][:, middle - int(0.6 * half) : middle - int(0.2 * half)]
    right = light[empty][:, middle + int(0.2 * half) : middle + int(0.6 * half)]
    assert right.mean() > 1.4 * left.mean()


def test_the_liquid_tints_and_a_weaker_index_magnifies_less():
    def picture(**liquid):
        made = make_renderer("raster", striped(**liquid), MADE.meshes)
        seen = made.draw(start_state(SCENE), 320, 176, ("rgb", "ids"))
        made.close()
        rows, columns = np.nonzero(seen["ids"] == 3)
        inside = (slice(rows.min() + 12, rows.max() - 8), slice(columns.min(), columns.max()))
        return seen["rgb"][inside].astype(float)

    amber = picture()
    assert amber[..., 0].mean() > 1.5 * amber[..., 2].mean()
    clear = Texture(builder="noise", colors=((0.99, 0.99, 0.99),))
    water, air = (picture(texture=clear, ior=n) for n in (1.333, 1.0))
    assert abs(water[..., 0].mean() - water[..., 2].mean()) < 25
    half = water.shape[1] // 2
    edge = slice(half // 3, half - half // 6)
    assert water[:, edge].mean() > air[:, edge].mean() + 25  # inverted against not


def test_the_state_must_hold_what_a_mesh_follows(renderer):
    with pytest.raises(UserError, match="liquid_surface"):
        renderer.draw(replace(start_state(SCENE), modal={}), 64, 36, ("ids",))
