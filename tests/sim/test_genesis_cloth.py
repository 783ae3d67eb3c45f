"""Cloth of Genesis: the numbers it is given, and what it then does."""

import dataclasses
import math

import numpy as np
import pytest
from engine_worlds import at_rate, cloth_of, engine_here, play, with_deformables
from physics_scenes import body, floor, world_spec

from wmeval.assets.gauge_cards import Drive
from wmeval.deformables import rest_shape, sheet_edge
from wmeval.errors import UserError
from wmeval.scene import Box, Mesh, Pin, Sheet
from wmeval.sim.engines.genesis_bending import matched
from wmeval.sim.engines.genesis_network import effective_spring, hinge_steepness, network
from wmeval.sim.protocol import DriverSpec

SHEET = Sheet(size=(0.3, 0.2), cells=(6, 5))


# --- without the library --------------------------------------------------------------------------


def energy(net, points, rest):
    def lengths(at):
        return np.linalg.norm(at[net.edges[:, 0]] - at[net.edges[:, 1]], axis=1)

    return float(0.5 * (net.springs * (lengths(points) - lengths(rest)) ** 2).sum())


def test_the_network_s_energy_is_that_of_the_cloth():
    """Uniaxial strain with the shear that costs nothing, and pure shear; per area of the sheet."""
    item = cloth_of(SHEET)
    rest = rest_shape(item, {}).vertices
    net, area, strain = network(item, rest_shape(item, {})), 0.06, 1e-5
    x, y = rest[:, 0], rest[:, 1]
    hx, hy = 0.05, 0.04
    for axis, stretched, kept in ((0, hx, hy), (1, hy, hx)):
        pulled = rest.copy()
        pulled[:, axis] *= 1 + strain
        pulled[:, 1 - axis] -= strain * rest[:, axis] * stretched / kept
        assert energy(net, pulled, rest) == pytest.approx(0.5 * 100 * strain**2 * area, rel=1e-3)
    sheared = np.stack([x + strain * y, y, rest[:, 2]], axis=1)
    assert energy(net, sheared, rest) == pytest.approx(0.5 * 40 * strain**2 * area, rel=1e-3)
    assert net.masses.sum() == pytest.approx(0.2 * area)
    assert net.masses.min() == pytest.approx(0.2 * hx * hy / 6)


def test_no_edge_of_the_network_is_corrected_by_more_than_its_relaxation():
    item = cloth_of(SHEET)
    net = network(item, rest_shape(item, {}))
    h = net.longest_substep(4, 0.3)
    both = (1 / net.masses)[net.edges].sum(axis=1)
    compliance = 4 * 0.3 / net.springs - both * h**2
    corners = (net.masses < 0.4 * 0.2 * 0.05 * 0.04)[net.edges].any(axis=1)
    assert compliance[~corners].min() == pytest.approx(0.0, abs=1e-9)
    assert 0 < corners.sum() <= 10  # two corners have two edges, two have three
    k = int(np.argmax(compliance))
    assert effective_spring(compliance[k], both[k], h, 4, 0.3) == pytest.approx(net.springs[k])
    with pytest.raises(UserError, match="takes sheets; leave textile out"):
        network(cloth_of(Mesh(sha256="0" * 64)), rest_shape(item, {}))


def test_steepness_of_a_flat_hinge_is_the_angle_s_slope():
    """Against the angle between two triangles, each vertex lifted a little."""
    points = np.array([[0.0, 0, 0], [0.3, 1.0, 0], [0.8, 0.4, 0], [-0.7, 0.5, 0]])
    inverse, step = np.array([1.0, 2.0, 3.0, 4.0]), 1e-4

    def angle(at):
        one, two, three, four = at
        a, b = np.cross(two - one, three - one), np.cross(four - one, two - one)
        turn = np.cross(a, b) @ (two - one) / np.linalg.norm(two - one)
        return math.atan2(turn, a @ b)

    slopes = np.zeros(4)
    for k in range(4):
        up, down = points.copy(), points.copy()
        up[k, 2] += step
        down[k, 2] -= step
        slopes[k] = (angle(up) - angle(down)) / (2 * step)
    found = hinge_steepness(points, np.array([[0, 1, 2, 3]]), inverse)
    assert found[0] == pytest.approx((inverse * slopes**2).sum(), rel=1e-6)


def test_vertices_that_an_engine_reordered_are_found_and_others_refused():
    ours = rest_shape(cloth_of(SHEET), {}).vertices
    order = np.random.Generator(np.random.PCG64(3)).permutation(len(ours))
    found = matched("cloth", ours, ours[order])
    assert (ours[order][found] == ours).all()
    with pytest.raises(UserError, match="made other vertices of it"):
        matched("cloth", ours, ours[order] + 1e-4)
    with pytest.raises(UserError, match="made other vertices of it"):
        matched("cloth", ours, np.concatenate([ours[:-1], ours[:1]]))


# --- with it --------------------------------------------------------------------------------------


@pytest.mark.accept
def test_led_vertices_are_where_their_body_is_and_the_others_rest_on_what_is_below():
    """A sheet let down on a box: exact at rest and at its pins, outside of the box, bit for bit."""
    engine_here("genesis")
    bar = body("bar", (), motion="kinematic", position=(-0.15, 0, 0.3))
    move = Drive(body="bar", profile="move", parameters={"offset": (0, 0, -0.2), "duration": 0.2})
    driver = DriverSpec(
        kind="imposed", params={"body": "bar", "drive": move.model_dump(mode="json")}
    )
    box = body("box", Box(half_extents=(0.06, 0.06, 0.1)), motion="static", position=(0, 0, 0.1))
    item = cloth_of(
        SHEET, position=(0, 0, 0.3), pins=(Pin(vertices=sheet_edge(SHEET, "x-"), body="bar"),)
    )
    spec = at_rate(with_deformables(world_spec(bar, box, floor()), item), 180, "genesis")
    spec = dataclasses.replace(spec, drivers=(driver,))
    log = play(spec, 0.2)
    sheet, held = log.state.vertices["cloth"], list(sheet_edge(SHEET, "x-"))
    rest = rest_shape(item, {}).vertices
    assert sheet[0] == pytest.approx(rest, abs=1e-6)
    u = log.state.times[:, None, None] / 0.2
    down = np.array([0, 0, -0.2]) * (3 * u**2 - 2 * u**3)
    assert sheet[:, held] == pytest.approx(rest[held] + down, abs=1e-6)
    last = sheet[-1]
    over = (np.abs(last[:, :2]) < 0.05).all(axis=1)
    assert over.any()
    assert last[over, 2].min() > 0.2 - 1e-3
    assert last[:, 2].min() < 0.15
    assert play(spec, 0.2).state.sha256() == log.state.sha256()


@pytest.mark.accept
@pytest.mark.parametrize(("textile", "low", "high"), [("mapping", 0.05, 5.0), ("network", 95, 105)])
def test_a_hanging_strip_has_the_stiffness_that_the_source_predicts(textile, low, high):
    """The mapping's stiffness is the solver's, far below what is asked; the network's is K_s."""
    engine_here("genesis")
    sheet = Sheet(size=(0.04, 0.1), cells=(2, 5))
    item = cloth_of(sheet, pins=(Pin(vertices=sheet_edge(sheet, "y+")),),
                 quaternion_wxyz=(math.sqrt(0.5), math.sqrt(0.5), 0, 0))  # fmt: skip
    spec = at_rate(with_deformables(world_spec(gravity=(0, 0, -49.05)), item), 180, "genesis",
                   textile=textile)  # fmt: skip
    edge = play(spec, 0.4).state.vertices["cloth"][:, list(sheet_edge(sheet, "y-")), 2].mean(axis=1)
    longer = edge[0] - edge[len(edge) // 2 :].mean()
    # Of a lumped strip: the weight of each row stretches the rows above it.
    asked = 0.2 * 49.05 * 0.1**2 / 2 / longer
    assert low < asked < high


@pytest.mark.accept
def test_a_sheet_that_flies_apart_ends_its_world_and_not_its_process():
    """At the corner of the world's bounds its triangles have no area, and its places no numbers."""
    engine_here("genesis")
    board = body("board", Box(half_extents=(0.5, 0.5, 0.01)), motion="static", position=(0, 0, 0.9))
    sheet = cloth_of(Sheet(size=(0.1, 0.1), cells=(4, 4)), linear_velocity=(1e3, 1e3, 1e3))
    spec = at_rate(with_deformables(world_spec(board), sheet), 180, "genesis")
    with pytest.raises(UserError, match=r"cloth 'cloth' left the finite world before t = 0\.0"):
        play(spec, 0.05)
