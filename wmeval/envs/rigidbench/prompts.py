"""What a video model is told of a sample: the task's sentence, and what all samples share."""

from __future__ import annotations

from collections.abc import Mapping

from wmeval.assets.cards import PROMPT_SLOT

LOCKED_CAMERA = (
    "The camera is locked in place and never moves, pans or zooms. Everything moves at its natural "
    "speed, in real time. It is one continuous take without cuts."
)
"""Suffix of every prompt."""

NEGATIVE_PROMPT = (
    "moving, shaking, panning or zooming camera, cuts, slow motion, time lapse, speed changes, "
    "objects that appear, vanish, merge, multiply, deform or change colour or size, objects that "
    "float or pass through each other or through the support, motion without cause, new objects, "
    "hands, people, text, captions, watermarks, blur, flicker, cartoon drawing"
)


def fill(template: str, phrases: Mapping[str, str]) -> str:
    """A task's sentence: ``{slot}`` becomes the object's name with its article.

    Args:
        template: of the task's card.
        phrases: by slot.

    Raises:
        KeyError: the template has a slot without a phrase.
    """
    text = PROMPT_SLOT.sub(lambda m: phrases[m[1]], template)
    return text[:1].upper() + text[1:]


def full_prompt(sentence: str) -> str:
    """The task's sentence with the suffix that all samples share."""
    return f"{sentence} {LOCKED_CAMERA}"
