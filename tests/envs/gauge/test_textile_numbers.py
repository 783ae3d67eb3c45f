"""What a result says that an engine was told of a textile is what the engine was told."""

from fractions import Fraction

import pytest

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_mapping import isaac_textile
from wmeval.deformables import rest_shape
from wmeval.envs import environment_class
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.configurations import regimes, settings_of
from wmeval.eval.sweep import planning, prepared
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.running import run_cell
from wmeval.sim.engines.newton_deformables import textile

CARD = families()["textile_bending"]


def told(engine, material="oxford", dt=Fraction(1, 180), **options):
    settings = settings_of(CARD, engine, "published-settings")
    config = settings.config.model_copy(update={"options": {**settings.config.options, **options}})
    return regimes(engine, config, dt, build(CARD, "1", material))["textile"]


def test_regimes_of_stiffness_are_told_for_every_textile():
    found = {m: told("newton", m) for m in CARD.materials}
    assert all(one["edge_ke"] > 0 for one in found.values())
    # Only uniform cloth keeps its measured shear stiffness.
    assert {m for m, one in found.items() if one["regime"] == "measured"} == {"uniform"}
    assert not any("by_option" in one for one in found.values())
    # The stretch stiffness is kept in either regime, the shear stiffness in one.
    for material, one in found.items():
        asked = CARD.body_properties("1", material, "textile")
        assert one["acts_as"] == pytest.approx(asked.number("stretch_stiffness"))
        kept = one["acts_as_shear"] == pytest.approx(asked.number("shear_stiffness"))
        assert kept is (one["regime"] == "measured")


@pytest.mark.parametrize(
    ("options", "regime"),
    [({"tri_ke": 2000.0}, "option"), ({"tri_ka": 50.0}, "option"),
     ({"edge_ke": 1e-3}, "fallback_prior"), ({"tri_ke": 0.0}, "fallback_prior")],
)  # fmt: skip
def test_numbers_that_options_give_newton_are_told_as_they_are_used(options, regime):
    built = build(CARD, "1", "oxford")
    (item,) = built.scene.deformables
    numbers = {"tri_ke": 0.0, "tri_ka": 0.0, "edge_ke": 0.0, **options}
    found = told("newton", **options)
    own = [key for key, value in options.items() if value]
    assert found.pop("regime") == regime
    # Uniaxial tension and shear of a membrane with two Lame numbers.
    mu, lame = found["tri_ke"], found["tri_ka"]
    assert found.pop("acts_as") == pytest.approx(4 * mu * (lame + mu) / (lame + 2 * mu))
    assert found.pop("acts_as_shear") == mu
    assert found.pop("by_option", []) == own
    assert found == textile(item, rest_shape(item, built.meshes), numbers)


def test_isaac_says_which_ratio_it_was_given_and_that_eq_6_replaced_it():
    for material in CARD.materials:
        (item,) = build(CARD, "1", material).scene.deformables
        asked = isaac_textile(stretch=item.stretch, shear=item.shear, hinge=item.bending,
                              thickness=item.thickness)  # fmt: skip
        found = told("isaac", material)
        assert found["young"] == pytest.approx(item.stretch / item.thickness)
        assert found["poisson"] == asked.poisson.value
        assert found["poisson_given"] == pytest.approx(item.stretch / (2 * item.shear) - 1)
        assert found["regime"] == asked.poisson.regime
    # Its shear stiffness is its stretch stiffness: a ratio of -0.5.
    assert told("isaac", "oxford")["regime"] == "fallback_low"


def test_the_spring_that_genesis_makes_is_of_the_steps_and_iterations_that_ran():
    base = told("genesis")
    assert told("genesis", stretch_iterations=8)["acts_as"] == pytest.approx(2 * base["acts_as"])
    assert told("genesis", stretch_iterations=8)["stretch_iterations"] == 8
    # A shorter step has more corrections a second: the cloth acts stiffer.
    assert told("genesis", dt=Fraction(1, 720))["acts_as"] > 2 * base["acts_as"]


def test_a_grid_reaches_what_a_result_says(monkeypatch):
    given = {}
    monkeypatch.setattr(
        "wmeval.eval.sweep.running.regimes",
        lambda engine, config, dt, built: given.update(dt=dt, **config.options),
    )
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of("slope_slider/1/wood"), ["published-settings"],
        {"dt": ["1/360"], "contact_erp": [0.1]}, twice="none",
    )  # fmt: skip
    assert run_cell(cell, "k", seconds=0.1).status == "ok"
    assert prepared.prepare(cell).spec.clock.dt == given["dt"] == Fraction(1, 360)
    assert given["contact_erp"] == 0.1


def test_an_environment_tells_its_own_solver_settings(monkeypatch):
    env = environment_class("GAUGE/TextileBending-v0")(
        engine="newton", material="oxford", solver={"tri_ke": 2000.0}
    )
    env._built = build(CARD, "1", "oxford")
    monkeypatch.setattr(type(env), "scene", env._built.scene)
    assert env.facts["gauge"]["regimes"]["textile"]["tri_ke"] == 2000.0
