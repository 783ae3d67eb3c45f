"""What GAUGE's things look like: materials by name, the breadboard, light."""

from __future__ import annotations

import math

from wmeval.envs.parts import material
from wmeval.scene import Material, Sky, Sun

BREADBOARD = "breadboard"
STEEL = "steel"

_MATERIALS = (
    material(BREADBOARD, "grid", (0.055, 0.06, 0.066), (0.16, 0.17, 0.18), roughness=0.55,
             specular=0.35, uv_m=0.25),
    material(STEEL, "brushed", (0.42, 0.43, 0.45), roughness=0.35, specular=0.6, uv_m=0.2),
    material("wood", "wood", (0.36, 0.19, 0.08), (0.24, 0.12, 0.05), roughness=0.6, uv_m=0.12),
    material("support", "wood", (0.40, 0.28, 0.15), (0.30, 0.19, 0.10), roughness=0.65, uv_m=0.3),
    material("plastic", "speckle", (0.72, 0.16, 0.10), (0.60, 0.10, 0.07), roughness=0.35,
             specular=0.5, uv_m=0.1),
    material("metal", "brushed", (0.55, 0.56, 0.58), roughness=0.3, specular=0.8, uv_m=0.1),
    material("rubber", "speckle", (0.10, 0.22, 0.42), (0.07, 0.15, 0.30), roughness=0.8, uv_m=0.1),
    material("probe", "brushed", (0.80, 0.55, 0.12), roughness=0.35, specular=0.6, uv_m=0.1),
    material("clamp", "plaster", (0.12, 0.13, 0.15), roughness=0.5, uv_m=0.1),
    material("foam", "noise", (0.56, 0.48, 0.18), (0.47, 0.39, 0.13), roughness=0.95,
             specular=0.05, uv_m=0.05),
    *(
        material(name, "weave", one, two, roughness=0.85, specular=0.15, uv_m=0.05, two_sided=True)
        for name, one, two in (
            ("rayon", (0.40, 0.13, 0.10), (0.32, 0.09, 0.07)),
            ("satin", (0.46, 0.40, 0.31), (0.37, 0.32, 0.25)),
            ("uniform", (0.16, 0.24, 0.40), (0.11, 0.17, 0.30)),
            ("oxford", (0.20, 0.34, 0.30), (0.14, 0.26, 0.22)),
            ("leather", (0.34, 0.18, 0.10), (0.26, 0.13, 0.07)),
            ("nylon", (0.32, 0.38, 0.46), (0.25, 0.31, 0.39)),
            ("tablecloth", (0.46, 0.09, 0.07), (0.52, 0.48, 0.42)),
        )
    ),
)  # fmt: skip

MATERIALS: dict[str, Material] = {m.name: m for m in _MATERIALS}


def sun_for(azimuth_deg: float) -> Sun:
    """A sun over the left shoulder of a camera at an azimuth about the scene [deg]."""
    from_where = math.radians(azimuth_deg - 50.0)
    return Sun(
        direction=(-0.6 * math.cos(from_where), -0.6 * math.sin(from_where), -0.8),
        strength=2.3,
        softness=0.05,
        reach=1.5,
    )


SKY = Sky(
    zenith=(0.55, 0.58, 0.62), horizon=(0.78, 0.79, 0.80), ground=(0.30, 0.29, 0.28), clouds=0.0
)


def look_of(body: str, material_name: str, *, measured: bool) -> str:
    """Name of the material in which a body is seen.

    Args:
        body: name on the card.
        material_name: variant of the family.
        measured: the body is what is measured.
    """
    for part, look in (("foam", "foam"), ("clamp", "clamp"), ("probe", "probe"),
                       ("beam", STEEL), ("rod", STEEL), ("frame", STEEL), ("board", "support"),
                       ("table", "support"), ("base", "support"), ("pedestal", "support"),
                       ("plate", "support"), ("wall", "wood")):  # fmt: skip
        if body.startswith(part) and not measured:
            return look
    if body == "ball" and not measured:
        return "wood"
    if material_name in MATERIALS:
        return material_name
    return {"soft": "rubber", "hard": "plastic"}.get(material_name, "plastic")
