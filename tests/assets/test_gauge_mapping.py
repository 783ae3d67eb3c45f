"""GAUGE's parameter mapping against its equations and the numbers they predict."""

import pytest

from wmeval.assets.gauge_cards import family
from wmeval.assets.gauge_mapping import (
    genesis_textile,
    isaac_textile,
    isotropic_poisson,
    membrane_stiffness,
    newton_textile,
    poisson,
)
from wmeval.errors import UserError

TABLE = {  # nu by eq. 5, nu chosen, tri_ke, tri_ka, whether a fall-back is behind the latter
    "oxford": (-0.50, 0.30, 1076, 1159, True),
    "leather": (-0.467, 0.30, 770, 830, True),
    "nylon": (4.18, 0.45, 461, 496, True),
    "rayon": (-0.547, 0.30, 112, 120.5, True),
    "satin": (37.3, 0.45, 28.6, 30.8, True),
    "uniform": (0.351, 0.351, 333, 360, False),
    "tablecloth": (6.58, 0.45, 485, 522, True),
}


def numbers(material):
    if material == "tablecloth":
        return family("tablecloth_pulling").properties["any"]["textile"]
    return family("textile_stretching").properties[material]["textile"]


@pytest.mark.parametrize("material", TABLE)
def test_textiles_map_as_the_equations_say(material):
    p = numbers(material)
    given, chosen, ke, ka, fallback = TABLE[material]
    isaac = isaac_textile(
        stretch=p.stretch_stiffness, shear=p.shear_stiffness,
        hinge=p.bend_stiffness, thickness=p.thickness,
    )  # fmt: skip
    assert isaac.poisson.given == pytest.approx(given, rel=0.005)
    assert isaac.poisson.value == pytest.approx(chosen, rel=0.002)
    assert isaac.poisson.fallback == (chosen in (0.30, 0.45))
    assert isaac.young * p.thickness == pytest.approx(p.stretch_stiffness)
    assert isaac.surface_bend_stiffness * 4 * p.thickness**3 == pytest.approx(p.bend_stiffness)
    newton = newton_textile(
        stretch=p.stretch_stiffness, shear=p.shear_stiffness,
        hinge=p.bend_stiffness, edge_length=0.012,
    )  # fmt: skip
    assert (newton.tri_ke, newton.tri_ka) == pytest.approx((ke, ka), rel=0.002)
    assert newton.fallback is fallback
    assert newton.edge_ke == pytest.approx(p.bend_stiffness / 0.012)
    # The numbers give back the measured stretch stiffness in either regime, the shear in one.
    stretch, shear = membrane_stiffness(newton.tri_ke, newton.tri_ka)
    assert stretch == pytest.approx(p.stretch_stiffness)
    assert (shear == pytest.approx(p.shear_stiffness)) is not fallback
    genesis = genesis_textile(stretch=p.stretch_stiffness, hinge=p.bend_stiffness)
    assert genesis.stretch_compliance * p.stretch_stiffness == pytest.approx(1)
    assert genesis.bending_compliance * p.bend_stiffness == pytest.approx(1)


@pytest.mark.parametrize(
    ("nu", "value", "regime"),
    [(0, 0, "measured"), (0.4999, 0.4999, "measured"), (0.5, 0.45, "fallback_high"),
     (0.62, 0.45, "fallback_high"), (-1e-9, 0.30, "fallback_low")],
)  # fmt: skip
def test_poissons_ratio_falls_back_by_eq_6(nu, value, regime):
    chosen = poisson(nu)
    assert (chosen.value, chosen.regime) == (value, regime)
    assert chosen.given == nu


def test_062_is_refused_by_name():
    rod = family("stick_stack").properties["soft"]["rod"]
    assert rod.poisson == 0.62
    with pytest.raises(UserError, match=r"soft rod: Poisson's ratio 0\.62 .* fall-back 0\.45"):
        isotropic_poisson(rod.poisson, of="stick-stack, soft rod")
    assert isotropic_poisson(0.49, of="hard rod") == 0.49


@pytest.mark.parametrize("shear", [0.5, 0.25])
def test_the_interval_of_eq_11_is_open(shear):
    made = newton_textile(stretch=1.0, shear=shear, hinge=1.0, edge_length=1.0)
    assert made.regime == "fallback_prior"
    assert made.tri_ke == pytest.approx(1 / 2.7)


@pytest.mark.parametrize("name", ["stretch", "shear", "hinge", "thickness"])
def test_impossible_measurements_are_refused(name):
    good = {"stretch": 1.0, "shear": 1.0, "hinge": 1.0, "thickness": 1.0}
    with pytest.raises(UserError, match=name):
        isaac_textile(**{**good, name: -1.0})
