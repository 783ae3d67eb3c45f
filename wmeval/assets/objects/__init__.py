"""The 24 everyday objects: builders of parts, by the names that cards give.

A builder returns parts in any place, of about the real thing's size; `wmeval.assets.models` scales
them to the card's extents and centres them.
"""

_HERE = "wmeval.assets.objects"

OBJECTS: dict[str, str] = {
    "apple": f"{_HERE}.fruit:apple",
    "banana": f"{_HERE}.fruit:banana",
    "baseball": f"{_HERE}.balls:baseball",
    "bouncy_ball": f"{_HERE}.balls:bouncy_ball",
    "coconut": f"{_HERE}.fruit:coconut",
    "cricket_ball": f"{_HERE}.balls:cricket_ball",
    "food_can": f"{_HERE}.cans:food_can",
    "kiwi": f"{_HERE}.fruit:kiwi",
    "large_dice": f"{_HERE}.toys:large_dice",
    "lemon": f"{_HERE}.fruit:lemon",
    "mango": f"{_HERE}.fruit:mango",
    "orange": f"{_HERE}.fruit:orange",
    "peach": f"{_HERE}.fruit:peach",
    "pear": f"{_HERE}.fruit:pear",
    "plastic_bottle": f"{_HERE}.cans:plastic_bottle",
    "pomegranate": f"{_HERE}.crowned:pomegranate",
    "red_bull_can": f"{_HERE}.cans:red_bull_can",
    "rubiks_cube": f"{_HERE}.toys:rubiks_cube",
    "rugby_ball": f"{_HERE}.balls:rugby_ball",
    "soda_can": f"{_HERE}.cans:soda_can",
    "tennis_ball": f"{_HERE}.balls:tennis_ball",
    "tomato": f"{_HERE}.crowned:tomato",
    "toy_duck": f"{_HERE}.toys:toy_duck",
    "watermelon": f"{_HERE}.fruit:watermelon",
}
"""Builder to "module:function" of ``() -> tuple[Part, ...]``."""
