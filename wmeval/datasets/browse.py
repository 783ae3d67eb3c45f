"""The page of a set of clips: thumbnails, filters, videos, in one HTML file that needs no network.

index.html           all clips as compact JSON, and the script that shows them
thumbs/000000.jpg    first frame of a clip's video, small; made with its row

Whatever a prompt or a name holds, it stays text: the data are escaped for HTML, the script writes
text nodes only, and the page's own policy lets no other script run. The same rows give the same
bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from wmeval.datasets.film import film_layer
from wmeval.datasets.location import Location
from wmeval.errors import UserError

INDEX, THUMBS = "index.html", "thumbs"
WIDTH, QUALITY = 320, 80
"""Of a thumbnail: its width [px] (of a smaller video, the video's), and JPEG's quality."""

Row = Mapping[str, Any]


# --- thumbnails ---------------------------------------------------------------------------------


def thumb_key(number: int) -> str:
    """Where the thumbnail of a clip lies."""
    return f"{THUMBS}/{number:06d}.jpg"


def video_of(row: Row) -> str:
    """Where the video of a clip lies, relative to its set."""
    return str(row.get("video") or f"{row['path']}/video.mp4")


def thumbnail(place: Location, video: str, size: tuple[int, int], frames: int) -> bytes:
    """First frame of a video as a small JPEG; the same video gives the same bytes.

    Args:
        place: the set.
        video: key of the mp4 file in it.
        size: width and height of the video [px].
        frames: number of its frames.

    Raises:
        UserError: no such video, or a damaged one.
    """
    import cv2

    picture = film_layer((place / video).url, frames, size)[0]
    width, height = size
    small = min(width, WIDTH)
    shape = (small, max(1, round(height * small / width)))
    drawn = cv2.resize(picture, shape, interpolation=cv2.INTER_AREA)
    options = [cv2.IMWRITE_JPEG_QUALITY, QUALITY, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    done, data = cv2.imencode(".jpg", cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR), options)
    if not done:
        raise UserError(f"{place.url}/{video}: no thumbnail of {width}x{height} px can be made")
    return bytes(data.tobytes())


def put_thumbnail(
    place: Location, number: int, video: str, size: tuple[int, int], frames: int
) -> tuple[str, bytes]:
    """Write the thumbnail of a clip whose video is there; its key and content.

    Raises:
        UserError: as `thumbnail`; or disk full, not writable.
    """
    key, content = thumb_key(number), thumbnail(place, video, size, frames)
    place.put(key, content)
    return key, content


def put_missing_thumbnails(place: Location, rows: Sequence[Row]) -> frozenset[int]:
    """Make the thumbnails that are not there; a clip whose video cannot be read stays without.

    Returns:
        Numbers of the clips that have one.
    """
    there = {f"{THUMBS}/{name}" for name in (place / THUMBS).objects()}
    shown = set()
    for row in rows:
        number = int(row["clip"])
        if thumb_key(number) not in there:
            content: bytes | None = None
            size = (int(row["width"]), int(row["height"]))
            try:
                content = thumbnail(place, video_of(row), size, int(row["frames"]))
            except UserError:
                continue  # `wmeval validate` says what is wrong with it.
            place.put(thumb_key(number), content)
        shown.add(number)
    return frozenset(shown)


# --- the page -----------------------------------------------------------------------------------


class _Names:
    """Texts by number, each kept once."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def __call__(self, text: Any) -> int:
        return -1 if text is None else self.number.setdefault(str(text), len(self.number))


TABLES = ("task", "scene", "surface", "split", "object", "prompt", "picture")


def page_data(rows: Sequence[Row], shown: frozenset[int]) -> dict[str, Any]:
    """What the page knows of the clips: texts once in tables, a short list per clip.

    A clip is [number, sample id, task, scene, surface, split, seed, prompt, picture, path, video,
    thumbnail or "", actors]; task to split, prompt and picture are numbers in their tables. An
    actor is [name, 1 if it moves, object or -1]. A picture is "frames fps width height".
    """
    names = {table: _Names() for table in TABLES}
    clips = []
    for row in rows:
        facts, number = row["facts"], int(row["clip"])
        picture = f"{row['frames']} {row['fps']} {row['width']} {row['height']}"
        actors = [
            [a["name"], int(a["role"] == "active"), names["object"](a["object"])]
            for a in facts["actors"]
        ]
        clips.append(
            [
                number,
                facts["sample_id"],
                names["task"](facts["task_type"]),
                names["scene"](facts["scene_id"]),
                names["surface"](facts["surface_name"]),
                names["split"](facts["split"]),
                facts["seed"],
                names["prompt"](facts["prompt"]),
                names["picture"](picture),
                row["path"],
                video_of(row),
                thumb_key(number) if number in shown else "",
                actors,
            ]
        )
    return {"tables": {k: list(v.number) for k, v in names.items()}, "clips": clips}


def page(
    title: str,
    *,
    rows: Sequence[Row],
    asked: int,
    shown: frozenset[int],
    links: Sequence[str],
    opener: str,
) -> str:
    """The page of a set, or of what there is of one.

    Args:
        title: name of the set.
        rows: of its finished clips.
        asked: clips that the set shall have.
        shown: numbers of the clips that have a thumbnail.
        links: keys of files that the page's head leads to.
        opener: Python that reads a clip; ``{index}``, ``{path}`` stand for its place in the set.

    Returns:
        HTML.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wmeval.datasets", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    data = {**page_data(rows, shown), "asked": asked, "opener": opener}
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("browse.html.j2").render(
        title=title,
        count=len(rows),
        asked=asked,
        links=links,
        data=_for_html(data),
        script=script,
        digest=digest,
    )


@cache
def _script() -> str:
    from importlib.resources import files

    return files("wmeval.datasets").joinpath("templates/browse.js.j2").read_text(encoding="utf-8")


_IN_HTML = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def _for_html(value: Any) -> str:
    """JSON that may stand in a script element: nothing in it ends the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a surrogate pair is no UTF-8.
    return text.translate(_IN_HTML).encode("utf-8", "backslashreplace").decode()
