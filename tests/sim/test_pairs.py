"""Values by which an engine of another rule gives the products that scenes ask for."""

import math

import pytest
from physics_scenes import body, floor, world_spec

from wmeval.errors import UserError
from wmeval.scene import Sphere
from wmeval.sim.engines.pairs import own_values

RULES = {
    "mean": lambda a, b: (a + b) / 2,
    "max": max,
    "min": min,
    "geometric": lambda a, b: math.sqrt(a * b),
}


def scene_of(*bodies):
    return world_spec(*bodies).scene


def ball(name, friction, **fields):
    return body(name, Sphere(radius=0.1), friction=friction, restitution=friction, **fields)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "bodies",
    [
        (floor(friction=1.0, restitution=1.0), ball("a", 0.27)),
        (floor(friction=0.5, restitution=0.5), ball("a", 0.6)),
        (ball("a", 0.6), ball("b", 0.6)),
        (floor(friction=0.3, restitution=0.9),),
        (ball("alone", 0.4),),
    ],
)
def test_the_rule_gives_the_product_of_every_pair_that_can_touch(rule, bodies):
    scene = scene_of(*bodies)
    for what in ("friction", "restitution"):
        value = own_values(scene, what, rule, 1.0)
        assert all(0 <= v <= 1 for v in value.values())
        for i, a in enumerate(scene.bodies):
            for j, b in enumerate(scene.bodies[:i]):
                if a.mass or b.mass:
                    product = getattr(a, what) * getattr(b, what)
                    assert RULES[rule](value[i], value[j]) == pytest.approx(product, abs=1e-9)


@pytest.mark.parametrize("rule", ["mean", "geometric"])
def test_many_bodies_on_one_floor_agree(rule):
    scene = scene_of(
        floor(friction=0.5), ball("a", 0.6), ball("b", 0.6), ball("wall", 0.9, motion="static")
    )
    value = own_values(scene, "friction", rule, 1e6)
    for i, j in ((0, 1), (0, 2), (1, 2), (1, 3)):
        product = scene.bodies[i].friction * scene.bodies[j].friction
        assert RULES[rule](value[i], value[j]) == pytest.approx(product, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "said"),
    [("mean", "the mean of"), ("max", "the greater of"), ("min", "the smaller of")],
)
def test_products_that_no_values_give_are_refused_by_name(rule, said):
    scene = scene_of(*(ball(f"b{i}", f) for i, f in enumerate((0.1, 0.9, 0.1, 0.9))))
    with pytest.raises(UserError, match=f"{said} two bodies' friction.*would be off by"):
        own_values(scene, "friction", rule, 1e6)
