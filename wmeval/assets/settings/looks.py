"""Looks that many settings share: timbers, metals, glazes, cloth, leaves."""

from __future__ import annotations

from typing import Any

from wmeval.scene import Color, Material, Texture


def _look(builder: str, *colors: Color, **more: Any) -> Material:
    texture = {k: more.pop(k) for k in ("repeat", "seed") if k in more}
    return Material(name="-", texture=Texture(builder=builder, colors=colors, **texture), **more)


def _timber(light: Color, dark: Color, **more: Any) -> Material:
    return _look("wood", light, dark, **{"uv_m": 0.8, "roughness": 0.5, "specular": 0.3, **more})


def _cloth(color: Color, **more: Any) -> Material:
    r, g, b = color
    weft = (0.8 * r, 0.8 * g, 0.8 * b)
    return _look(
        "weave", color, weft, **{"uv_m": 0.25, "roughness": 0.95, "specular": 0.05, **more}
    )


def _paint(color: Color, **more: Any) -> Material:
    return _look("plaster", color, **{"uv_m": 1.1, "roughness": 0.6, "specular": 0.2, **more})


LOOKS: dict[str, Material] = {
    # timbers
    "oak": _timber((0.34, 0.225, 0.13), (0.245, 0.15, 0.08)),
    "pale_oak": _timber((0.45, 0.34, 0.225), (0.36, 0.26, 0.165)),
    "walnut": _timber((0.135, 0.075, 0.042), (0.075, 0.038, 0.02), roughness=0.45),
    "ebony": _timber((0.045, 0.035, 0.03), (0.025, 0.02, 0.017), roughness=0.4),
    # metals and stone
    "black_metal": _look("brushed", (0.025, 0.025, 0.027), (0.017, 0.017, 0.018), uv_m=0.4,
                         roughness=0.45, specular=0.5),
    "steel": _look("brushed", (0.56, 0.57, 0.58), (0.44, 0.45, 0.46), uv_m=0.5, roughness=0.28,
                   specular=0.9),
    "dark_steel": _look("brushed", (0.16, 0.165, 0.17), (0.11, 0.115, 0.12), uv_m=0.5,
                        roughness=0.3, specular=0.8),
    "brass": _look("brushed", (0.62, 0.44, 0.17), (0.48, 0.33, 0.12), uv_m=0.3, roughness=0.28,
                   specular=0.9),
    "black_glass": _look("noise", (0.012, 0.012, 0.014), (0.018, 0.018, 0.02), uv_m=0.5,
                         roughness=0.1, specular=0.9),
    "mirror_glass": _look("plaster", (0.55, 0.60, 0.63), (0.62, 0.67, 0.70), uv_m=1.2,
                          roughness=0.08, specular=1.0),
    # paint and glaze
    "white": _paint((0.66, 0.65, 0.62)),
    "black": _paint((0.022, 0.022, 0.023), roughness=0.5),
    "china": _paint((0.78, 0.77, 0.73), uv_m=0.3, roughness=0.18, specular=0.7),
    "stoneware": _look("speckle", (0.50, 0.46, 0.39), (0.34, 0.28, 0.21), (0.6, 0.56, 0.5),
                       uv_m=0.25, roughness=0.5),
    "blue_glaze": _look("noise", (0.05, 0.14, 0.27), (0.10, 0.24, 0.38), uv_m=0.2, roughness=0.2,
                        specular=0.7),
    "green_glaze": _look("noise", (0.07, 0.17, 0.12), (0.13, 0.26, 0.18), uv_m=0.2,
                         roughness=0.22, specular=0.7),
    "clay": _look("noise", (0.40, 0.19, 0.11), (0.50, 0.26, 0.15), uv_m=0.3, roughness=0.85),
    "concrete_pot": _look("concrete", (0.38, 0.37, 0.35), uv_m=0.5, roughness=0.9),
    "shade": _look("weave", (0.95, 0.88, 0.72), (0.88, 0.80, 0.63), uv_m=0.2, roughness=0.9),
    "glow": _paint((1.0, 0.96, 0.84), uv_m=0.3),
    # soft and small things
    "linen": _cloth((0.60, 0.56, 0.48)),
    "white_cloth": _cloth((0.66, 0.65, 0.62)),
    "gauze": _cloth((0.80, 0.79, 0.76), two_sided=True, uv_m=0.5),
    "paper": _paint((0.76, 0.74, 0.68), uv_m=0.3),
    "rattan": _look("weave", (0.47, 0.31, 0.16), (0.33, 0.20, 0.09), uv_m=0.42, roughness=0.8),
    "book_red": _cloth((0.32, 0.06, 0.05), uv_m=0.15, roughness=0.7),
    "book_blue": _cloth((0.06, 0.12, 0.22), uv_m=0.15, roughness=0.7),
    "book_sand": _cloth((0.52, 0.43, 0.28), uv_m=0.15, roughness=0.7),
    "book_green": _cloth((0.08, 0.17, 0.11), uv_m=0.15, roughness=0.7),
    "lemon": _look("noise", (0.80, 0.58, 0.06), (0.72, 0.48, 0.04), uv_m=0.2, roughness=0.5),
    "orange": _look("noise", (0.80, 0.32, 0.04), (0.70, 0.25, 0.03), uv_m=0.2, roughness=0.5),
    "bread": _look("noise", (0.40, 0.21, 0.08), (0.56, 0.35, 0.15), uv_m=0.3, roughness=0.85),
    "wax": _paint((0.84, 0.78, 0.64), uv_m=0.2),
    # plants
    "leaf": _look("noise", (0.045, 0.13, 0.03), (0.10, 0.23, 0.055), uv_m=0.22, roughness=0.55,
                  two_sided=True),
    "deep_leaf": _look("noise", (0.04, 0.12, 0.045), (0.085, 0.20, 0.07), uv_m=0.25,
                       roughness=0.4, two_sided=True),
    "olive_leaf": _look("leaves", (0.13, 0.18, 0.09), (0.30, 0.35, 0.22), roughness=0.8),
    "pampas": _look("weave", (0.66, 0.53, 0.36), (0.56, 0.43, 0.28), uv_m=0.2, roughness=0.95,
                    two_sided=True),
    "stem": _look("bark", (0.26, 0.19, 0.12), (0.12, 0.08, 0.05), uv_m=0.5, roughness=0.9),
    "soil": _look("gravel", (0.07, 0.045, 0.03), (0.03, 0.02, 0.015), uv_m=0.4, roughness=0.95),
}  # fmt: skip
"""By name; a setting's own looks come on top."""
