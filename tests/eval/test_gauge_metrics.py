"""GAUGE's metrics on trajectories and surfaces whose answers are known."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wmeval.assets import gauge_proxies as proxies
from wmeval.assets.gauge_cards import family
from wmeval.assets.gauge_markers import markers
from wmeval.errors import UserError
from wmeval.eval.metrics import gauge, surfaces
from wmeval.eval.metrics.trajectory import rmse, warp
from wmeval.eval.truths import rigid

RNG = np.random.default_rng(7)


def grid(rows, columns, spacing=1.0):
    y, x = np.mgrid[:rows, :columns] * spacing
    points = np.stack([x.ravel(), y.ravel(), np.zeros(rows * columns)], axis=1)
    faces = []
    for i, j in itertools.product(range(rows - 1), range(columns - 1)):
        a = i * columns + j
        faces += [(a, a + 1, a + columns + 1), (a, a + columns + 1, a + columns)]
    return points, np.array(faces)


# --- curvature ------------------------------------------------------------------------------------


def test_flat_and_rolled_sheets_have_no_curvature():
    points, faces = grid(6, 8)
    full = surfaces.reference_angles(points, faces)
    assert sorted(set(np.round(full / math.pi, 6))) == [0.5, 1, 2]
    assert (full == math.pi / 2).sum() == 4
    assert surfaces.curvature(points, faces, full) == pytest.approx(0, abs=1e-12)
    # Rolled along one axis, every strip stays flat: inside and on its edges.
    angle = 0.2 * points[:, 0]
    rolled = np.stack([5 * np.sin(angle), points[:, 1], 5 * (1 - np.cos(angle))], axis=1)
    k = surfaces.curvature(rolled, faces, full)
    assert k[full == 2 * math.pi] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_a_sphere_patch_has_the_curvature_of_its_area(radius):
    """Deficit of each inner vertex: its share of the area over R^2 (to second order)."""
    points, faces = grid(21, 21, 0.01)
    flat = points - points.mean(axis=0)
    full = surfaces.reference_angles(flat, faces)
    out = np.linalg.norm(flat[:, :2], axis=1)
    bent = flat.copy()
    bent[:, :2] *= (np.sin(out / radius) * radius / np.where(out > 0, out, 1))[:, None]
    bent[out == 0, :2] = 0
    bent[:, 2] = radius * np.cos(out / radius)
    k = surfaces.curvature(bent, faces, full)
    inner = full == 2 * math.pi
    share = np.zeros(len(bent))
    for face, area in zip(faces, surfaces.face_areas(bent, faces), strict=True):
        share[face] += area / 3
    assert k[inner].sum() == pytest.approx(share[inner].sum() / radius**2, rel=2e-3)
    middle = int(np.argmin(out))
    assert k[middle] == pytest.approx(share[middle] / radius**2, rel=2e-3)


@pytest.mark.parametrize("sign", [1, -1], ids=["bowl", "saddle"])
def test_bowls_and_saddles_have_the_curvature_of_their_surface(sign):
    """Deficits add up to the integral of K over the surface (z = (x^2 +- y^2) / 2 R)."""
    points, faces = grid(21, 21, 0.01)
    flat = points - points.mean(axis=0)
    full = surfaces.reference_angles(flat, faces)
    x, y, bend = flat[:, 0], flat[:, 1], 1 / 0.5
    bent = flat + np.outer((x**2 + sign * y**2) * bend / 2, [0, 0, 1])
    steep = 1 + bend**2 * (x**2 + y**2)
    # K = +-b^2 / steep^2, on a surface element of sqrt(steep) dx dy.
    share = sign * bend**2 * steep**-1.5 * 0.01**2
    inner = full == 2 * math.pi
    k = surfaces.curvature(bent, faces, full)
    assert k[inner].sum() == pytest.approx(share[inner].sum(), rel=1e-3)
    assert k.sum() == pytest.approx(0, abs=1e-12)


def test_corners_of_solids_have_their_known_deficits():
    # The apex of a cube's corner: three right angles.
    cube = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1]])
    full = np.array([2 * math.pi, math.pi, math.pi, math.pi])
    assert surfaces.curvature(cube, faces, full)[0] == pytest.approx(math.pi / 2)
    octahedron = np.concatenate([np.eye(3), -np.eye(3)])
    sides = np.array([(a, b, c) for a in (0, 3) for b in (1, 4) for c in (2, 5)])
    k = surfaces.curvature(octahedron, sides, np.full(6, 2 * math.pi))
    assert k == pytest.approx(2 * math.pi / 3)
    assert k.sum() == pytest.approx(4 * math.pi)  # a closed surface


@pytest.mark.parametrize("name", ["textile_stretching", "textile_flinging"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_curvature_sums_to_zero_whatever_the_shape(name, seed):
    made = markers(family(name))
    full = surfaces.reference_angles(made.points, made.faces)
    shape = made.points + np.random.default_rng(seed).normal(0, 0.05, (3, *made.points.shape))
    k = surfaces.curvature(shape, made.faces, full)
    assert k.sum(axis=1) == pytest.approx(0, abs=1e-9)
    assert np.abs(k).max() > 0.1


def test_what_is_not_measured_is_left_out():
    points, faces = grid(3, 3)
    full = surfaces.reference_angles(points, faces)
    lost = np.stack([points, points])
    lost[1, 4] = np.nan
    published = surfaces.curvature(lost, faces, full)
    assert published[0] == pytest.approx(0, abs=1e-12)
    assert published[1, 4] == pytest.approx(2 * math.pi)  # nothing was summed
    same = points.copy()
    same[1] = same[4]
    assert np.isfinite(surfaces.curvature(same, faces, full)).all()
    with pytest.raises(ValueError, match="names marker 9"):
        surfaces.curvature(points, faces + 1, full)
    with pytest.raises(ValueError, match="marker 9 belongs to no face"):
        surfaces.reference_angles(np.vstack([points, [[9, 9, 9]]]), faces)


def test_turning_angles_of_a_polygon():
    t = np.linspace(0, math.pi / 2, 7)
    arc = np.stack([np.cos(t), np.sin(t), 0 * t], axis=1)
    k = surfaces.turning_angles(np.stack([arc, arc]), [range(7)])
    assert k[:, 1:-1] == pytest.approx(math.pi / 12)
    assert k[:, [0, -1]] == pytest.approx(0)
    made = markers(family("textile_bending"))
    assert surfaces.turning_angles(made.points, made.lines) == pytest.approx(0)
    # Ten turning angles cannot reach the published 47.
    assert math.sqrt(10) * math.pi < 10


def test_areas_follow_affine_maps():
    made = markers(family("foam_stretching"))
    areas = surfaces.face_areas(made.points, made.faces)
    matrix = RNG.normal(size=(3, 3))
    normals = np.cross(
        made.points[made.faces[:, 1]] - made.points[made.faces[:, 0]],
        made.points[made.faces[:, 2]] - made.points[made.faces[:, 0]],
    )  # fmt: skip
    # Nanson: areas map by det(F) F^-T.
    cofactor = np.linalg.det(matrix) * np.linalg.inv(matrix).T
    expected = np.linalg.norm(normals @ cofactor.T, axis=1) / 2
    mapped = surfaces.face_areas(made.points @ matrix.T + [1, 2, 3], made.faces)
    assert mapped == pytest.approx(expected)
    track = np.stack([areas, 1.1 * areas])
    assert surfaces.ratio_to_start(track)[1] == pytest.approx(1.1)
    assert surfaces.change_from_start(track)[1] == pytest.approx(0.1 * areas)


# --- trajectories ---------------------------------------------------------------------------------


def test_generalised_trajectories_have_the_published_units():
    assert gauge.generalised(np.ones((2, 1, 3)), "position") == pytest.approx(1e3 * np.ones((2, 3)))
    assert gauge.generalised(np.ones((2, 5)), "curvature") == pytest.approx(1.0)
    assert gauge.generalised(np.ones((2, 5)), "area") == pytest.approx(1e6)


def test_rmse_is_a_norm_over_components():
    a, b = np.zeros((4, 2)), np.tile([3.0, 4.0], (4, 1))
    assert rmse(a, b) == pytest.approx(5)


def brute_force(a, b):
    """Least sum over all monotone paths, by listing them."""
    cost = np.linalg.norm(a[:, None] - b[None], axis=2)
    best = {}

    def walk(i, j):
        if (i, j) not in best:
            before = [walk(*s) for s in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if min(s) >= 0]
            best[i, j] = cost[i, j] + (min(before) if before else 0)
        return best[i, j]

    return walk(len(a) - 1, len(b) - 1)


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (5, 7, 3), (9, 4, 24), (12, 12, 63)])
def test_dtw_is_the_least_sum_over_its_paths_length(n, m, d):
    a, b = RNG.normal(size=(n, d)), RNG.normal(size=(m, d))
    made = warp(a, b)
    assert made.total == pytest.approx(brute_force(a, b))
    assert made.mean == pytest.approx(made.total / len(made.path))
    assert sum(np.linalg.norm(a[i] - b[j]) for i, j in made.path) == pytest.approx(made.total)


def test_dtw_agrees_with_dtaidistance():
    ndim = pytest.importorskip("dtaidistance.dtw_ndim", reason="dtaidistance is not installed")
    a, b = RNG.normal(size=(30, 3)), RNG.normal(size=(25, 3))
    assert warp(a, b).total == pytest.approx(
        ndim.distance(a, b, inner_dist="euclidean", use_c=False)
    )


def test_a_delay_costs_rmse_and_not_dtw():
    t = np.linspace(0, 4, 200)[:, None]
    moved = np.clip(t - 1, 0, 1)
    late = np.clip(t - 1.2, 0, 1)
    assert rmse(late, moved) > 0.05
    assert warp(late, moved).mean < 0.01


# --- cradle ---------------------------------------------------------------------------------------


def cradle(rate, seconds=2.0, transfer=1.0):
    """Heights and positions of the last ball of an ideal cradle."""
    length = 0.13294
    small = rigid.small_period(length)
    t = np.arange(round(seconds * rate)) / rate
    angle = rigid.swing_angle(t, small, -math.pi / 2)
    beyond = transfer * np.maximum(angle, 0)
    x = np.stack([0 * t, length * np.sin(beyond), -length * np.cos(beyond)], axis=1)
    return t, x, rigid.swing_period(small, math.pi / 2)


@pytest.mark.parametrize("rate", [30, 180, 2000])
def test_the_longest_rest_of_a_cradle_is_half_its_period(rate):
    _, x, period = cradle(rate)
    found = gauge.longest_rest(x, rate)
    # Differences reach one frame to either side: at most two frames are lost, one gained.
    assert -2.5 / rate < found - period / 2 < 1.5 / rate


def test_rests_obey_both_thresholds():
    z = np.zeros((100, 3))
    z[:, 2] = np.linspace(0, 2e-3, 100)  # 2 mm in 100 s: slow, but it drifts
    assert gauge.longest_rest(z, 1.0) == pytest.approx(25, abs=1)
    assert gauge.longest_rest(z, 1.0, height=1.0) == 100
    sideways = np.zeros((100, 3))
    sideways[:, 0] = np.linspace(0, 1, 100)  # level, but fast
    assert gauge.longest_rest(sideways, 1.0) == 0
    assert gauge.longest_rest(sideways, 1.0, velocities=np.zeros((100, 3))) == 100
    gap = np.zeros((10, 3))
    gap[6] = np.nan
    assert gauge.longest_rest(gap, 1.0, velocities=np.zeros((10, 3))) == 6
    assert math.isnan(gauge.longest_rest(np.full((3, 3), np.nan), 1.0))


@pytest.mark.parametrize("transfer", [1.0, 0.93, 0.5, 0.2])
def test_momentum_transfer_of_known_heights(transfer):
    t, x, period = cradle(180)
    rise = 0.13294 * transfer**2  # the height that this share of the speed reaches
    out = -0.13294 + rise * np.sin(np.clip((t - period / 4) / (period / 2), 0, 1) * math.pi)
    incoming = np.where(t < period / 4, 0.0, -0.13294)
    found = gauge.mte_first(incoming, out, rest_in=-0.13294, rest_out=-0.13294)
    assert found == pytest.approx(transfer, rel=1e-3)
    del x


def test_momentum_transfer_at_its_ends():
    still = np.full(50, -0.1)
    assert gauge.mte_first(still + 0.1, still, rest_in=-0.1, rest_out=-0.1) == 0
    assert math.isnan(gauge.mte_first(still, still, rest_in=-0.1, rest_out=-0.1))
    # What is not seen is not at rest: where it hangs, or whether it rose meanwhile.
    assert math.isnan(gauge.mte_first(still + 0.1, still, rest_in=-0.1, rest_out=math.nan))
    lost = still.copy()
    lost[20:30] = np.nan
    assert math.isnan(gauge.mte_first(still + 0.1, lost, rest_in=-0.1, rest_out=-0.1))
    assert math.isnan(gauge.mte_mean(still, drop=0.1, rest_out=-0.1, rate=30)[0])


def test_the_two_transfers_differ_on_a_decaying_cradle():
    rate, t = 120, np.arange(0, 3, 1 / 120)
    height = 0.1 * np.exp(-t) * np.maximum(np.sin(2 * math.pi * t / 0.9), 0)
    first = gauge.mte_first(np.full(len(t), 0.1), height, rest_in=0, rest_out=0)
    mean, events = gauge.mte_mean(height, drop=0.1, rest_out=0, rate=rate)
    assert events == 4
    assert mean < first < 1
    fine = np.arange(0, 3, 1e-5)
    fine = np.exp(-fine) * np.maximum(np.sin(2 * math.pi * fine / 0.9), 0)
    tops = [fine[round(k * 0.9e5) : round((k + 0.5) * 0.9e5)].max() for k in range(4)]
    tops = [x for x in tops if x]
    assert first == pytest.approx(math.sqrt(tops[0]), rel=2e-3)
    assert mean == pytest.approx(np.mean(np.sqrt(tops[:4])), rel=5e-3)


# --- pendulum -------------------------------------------------------------------------------------


def pendulum(seconds, rate=30, amplitude=math.pi / 2, length=0.28):
    small = rigid.small_period(length)
    t = np.arange(round(seconds * rate)) / rate
    angle = rigid.swing_angle(t, small, amplitude)
    x = np.stack([length * np.sin(angle), 0 * t, -length * np.cos(angle)], axis=1)
    return t, angle, x


def test_three_hundred_frames_resolve_only_111_or_125():
    _, angle, x = pendulum(10)
    made = gauge.pd_fourier(angle, 30)
    assert made.raw == pytest.approx(1.25)
    assert made.resolution == pytest.approx((10 / 7, 10 / 9))
    swing = gauge.swing_coordinate(x @ np.array([[0.6, 0.8, 0], [-0.8, 0.6, 0], [0, 0, 1]]))
    assert gauge.pd_fourier(swing, 30).raw == pytest.approx(1.25)
    assert gauge.pd_fourier(x[:, 2], 30).raw == pytest.approx(1.25 / 2)  # height swings twice


@pytest.mark.parametrize("period", [0.7, 1.06, 1.14, 1.93])
def test_a_period_is_between_the_bins_beside_its_own(period):
    t = np.arange(300) / 30
    made = gauge.pd_fourier(np.cos(2 * math.pi * t / period + 0.3), 30)
    longer, shorter = made.resolution
    assert shorter < period < longer
    assert shorter < made.raw < longer
    assert math.isnan(gauge.pd_fourier(np.zeros(300), 30).raw)
    assert math.isnan(gauge.pd_fourier(np.array([0, np.nan, 1, 2, 3.0]), 30).raw)


@pytest.mark.parametrize("damping", [-0.05, 0.0, 0.1, 0.8])
def test_a_damped_sinusoid_is_found_again(damping):
    t = np.arange(150) / 30
    y = 0.1 + np.exp(-damping * t) * (0.7 * np.cos(5.9 * t) + 0.2 * np.sin(5.9 * t))
    made = gauge.pd_fit(y, t)
    assert made.period == pytest.approx(2 * math.pi / 5.9, rel=1e-6)
    assert made.damping == pytest.approx(damping, abs=1e-5)
    assert made.r2 == pytest.approx(1)
    assert made.equilibrium == pytest.approx(0.1, abs=1e-6)
    noisy = y + np.random.default_rng(3).normal(0, 0.02, len(t))
    noisy[20:25] = np.nan
    again = gauge.pd_fit(noisy, t)
    assert again.period == pytest.approx(2 * math.pi / 5.9, rel=0.02)
    assert 0.9 < again.r2 < 1
    assert math.isnan(gauge.pd_fit(np.zeros(50), np.arange(50.0)).period)


def test_the_two_periods_differ_on_a_swing_of_90_degrees():
    t, angle, _ = pendulum(10)
    fitted = gauge.pd_fit(angle, t)
    assert fitted.period == pytest.approx(1.2529, rel=1e-3)
    assert 0.99 < fitted.r2 < 1  # it is no pure sinusoid


def test_energy_loss_of_an_undamped_swing_is_zero():
    _, _, x = pendulum(100)
    made = gauge.energy_loss(x[:, 2], -0.28)
    assert made.interpolated == pytest.approx(0, abs=1e-4)
    assert abs(made.raw) < 6e-3
    assert made.peaks > 150


@pytest.mark.parametrize("loss", [0.3, -0.1])
def test_energy_loss_of_a_known_decay(loss):
    t = np.arange(0, 20, 1 / 240)
    level = 1 - loss * t / 20
    height = level * np.cos(math.pi * t) ** 2  # peaks at whole seconds
    made = gauge.energy_loss(height, 0.0)
    assert made.interpolated == pytest.approx(loss * 19 / 20, rel=1e-3)
    assert made.peaks == 20
    assert math.isnan(gauge.energy_loss(np.array([1.0, 0.5, 0.1]), 0.0).raw)
    # What is lost in the middle says nothing; at an end it may be the peak that counts.
    for lost, known in ((slice(1000, 1500), True), (slice(3), False), (slice(-150, None), False)):
        seen = height.copy()
        seen[lost] = np.nan
        assert math.isfinite(gauge.energy_loss(seen, 0.0).raw) == known


def test_peaks_keep_their_distance():
    z = np.array([0, 1, 0, 3, 0, 2, 0, 0, 0, 0.5, 0.0])
    assert gauge.peaks(z) == [1, 3, 5, 9]
    assert gauge.peaks(z, apart=3) == [3, 9]
    assert gauge.peaks(z, floor=0.9) == [1, 3, 5]


# --- trials ---------------------------------------------------------------------------------------


def test_the_baseline_of_trials_of_known_spread():
    truth = np.stack([np.sin(np.linspace(0, 3, 50)), np.cos(np.linspace(0, 3, 50))], axis=1)
    offsets = np.array([-2, -1, 0, 1, 2.0])
    trials = [truth + np.array([o, 0]) for o in offsets]
    made = gauge.baseline(trials)
    assert made.mean == pytest.approx(truth)
    assert made.rmse == pytest.approx(np.abs(offsets).mean())
    assert made.rmse_std == pytest.approx(np.abs(offsets).std(ddof=1))
    assert made.dtw <= made.rmse
    assert made.trials == 5
    lost = [t.copy() for t in trials]
    lost[2][10:20] = np.nan
    again = gauge.baseline(lost)
    assert np.isfinite(again.mean).all()
    with pytest.raises(UserError, match=r"trial 1 is \(49, 2\)"):
        gauge.baseline([truth, truth[:-1]])
    with pytest.raises(UserError, match="two trials"):
        gauge.baseline([truth])


def test_normalisation_by_the_baseline():
    assert gauge.normalised(10.0, 4.0) == 2.5
    assert math.isnan(gauge.normalised(10.0, 0.0))


# --- proxies --------------------------------------------------------------------------------------


def test_the_assignment_is_the_least_sum_and_each_has_its_own():
    nodes = RNG.uniform(0, 0.02, (12, 3))
    wanted = RNG.uniform(0, 0.02, (4, 3))
    made = proxies.hungarian(wanted, nodes, limit=1.0)
    assert len(set(made.nodes[:, 0])) == 4
    best = min(
        sum(np.linalg.norm(wanted[k] - nodes[n]) for k, n in enumerate(choice))
        for choice in itertools.permutations(range(12), 4)
    )
    assert made.errors.sum() == pytest.approx(best)
    assert made.follow(nodes) == pytest.approx(nodes[made.nodes[:, 0]])


def test_two_markers_do_not_share_a_node():
    nodes = np.array([[0, 0, 0], [0.004, 0, 0.0]])
    made = proxies.hungarian(np.array([[0, 0, 0], [0.001, 0, 0.0]]), nodes)
    assert made.nodes[:, 0].tolist() == [0, 1]


def test_far_markers_are_named():
    marked = markers(family("foam_stretching"))
    nodes = marked.points + np.array([0.009, 0, 0])
    assert proxies.hungarian(marked.points, nodes).errors == pytest.approx(0.009)
    nodes[4] += [0.02, 0, 0]
    with pytest.raises(UserError, match=r"m5 \(2\d\.\d mm\)"):
        proxies.hungarian(marked.points, nodes, names=marked.names)
    with pytest.raises(UserError, match="need as many nodes"):
        proxies.hungarian(marked.points, nodes[:5])
    triangle = np.array([[0, 1, 2]])
    with pytest.raises(UserError, match="the surface"):
        proxies.on_triangles(marked.points, nodes, triangle, names=marked.names)
    with pytest.raises(UserError, match="any node"):
        proxies.affine(np.array([[9.0, 9, 9]]), nodes)


def test_points_of_triangles_start_at_the_marker_and_follow_the_cloth():
    card = family("textile_flinging")
    marked = markers(card)
    nodes, faces = grid(51, 41, 0.01)
    # In the sheet's plane y: x across, z down.
    sheet = np.stack([nodes[:, 0] - 0.2, 0 * nodes[:, 0], nodes[:, 1] - 0.25], axis=1)
    sheet += card.poses("1", "satin")["textile"].position
    made = proxies.on_triangles(marked.points, sheet, faces, names=marked.names)
    assert made.errors == pytest.approx(0, abs=1e-9)
    matrix = RNG.normal(size=(3, 3))
    track = np.stack([sheet, sheet @ matrix.T])
    assert made.follow(track)[1] == pytest.approx(marked.points @ matrix.T)
    off = proxies.on_triangles(marked.points + np.array([0, 0.004, 0]), sheet, faces)
    assert off.errors == pytest.approx(0.004)


def test_a_point_beside_a_triangle_is_on_its_edge_or_corner():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
    out = np.array([[0.5, -0.2, 0], [2, 0, 0], [0.6, 0.6, 0.3], [0.2, 0.2, 0.1]])
    made = proxies.on_triangles(out, corners, np.array([[0, 1, 2]]), limit=9)
    assert made.follow(corners) == pytest.approx(
        np.array([[0.5, 0, 0], [1, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0]])
    )
    assert made.weights.sum(axis=1) == pytest.approx(1)


def test_affine_weights_follow_every_affine_motion_of_particles():
    marked = markers(family("foam_twisting"))
    centre = np.asarray(family("foam_twisting").poses("1", "soft")["foam"].position)
    axes = [np.arange(-w / 2 + 0.003, w / 2, 0.006) for w in (0.05, 0.05, 0.2)]
    particles = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) + centre
    made = proxies.affine(marked.points, particles, names=marked.names)
    assert made.errors == pytest.approx(0, abs=1e-9)
    matrix = np.eye(3) + 0.1 * RNG.normal(size=(3, 3))
    assert made.follow(particles @ matrix.T) == pytest.approx(marked.points @ matrix.T)
    # The published way moves the markers, and with them the areas, for good.
    moved = proxies.hungarian(marked.points, particles).follow(particles)
    areas = [surfaces.face_areas(p, marked.faces).mean() * 1e6 for p in (marked.points, moved)]
    assert abs(areas[1] - areas[0]) > 5
