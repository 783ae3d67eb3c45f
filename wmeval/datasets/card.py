"""The card of a set of clips: what it is, how it was made, what it counts, what its files mean.

README.md        a data-set card, with the YAML head that data-set hubs read
croissant.json   the same for programs (`wmeval.datasets.croissant`)
index.html       all clips to look at (`wmeval.datasets.browse`)
thumbs/          first frames of the clips, for that page

They follow from the set's job and rows alone: the same set gives the same bytes, wherever it lies.
They are written before the manifest when a set is completed, and by `describe_set` at any time. A
README.md or index.html that somebody has changed by hand stays as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from wmeval.datasets import browse, sets
from wmeval.datasets.browse import INDEX
from wmeval.datasets.croissant import CROISSANT, Publication, croissant, published, sealed_for
from wmeval.datasets.location import Location, locate
from wmeval.datasets.sets import BUNDLES, CLIPS, MANIFEST, SetKind
from wmeval.errors import UserError
from wmeval.jobs.ledger import canonical
from wmeval.layers import LAYERS, Layer

README = "README.md"
KINDS: tuple[SetKind, ...] = (CLIPS, BUNDLES)
"""Sets that have a card."""

Row = Mapping[str, Any]
_SEAL = re.compile(r"<!-- written by wmeval; sha256 of the lines above: ([0-9a-f]{64}) -->\n\Z")

CONVENTIONS: tuple[tuple[str, str], ...] = (
    (
        "units",
        "SI everywhere: m, s, kg, N s, rad; degrees only where a name ends in `_deg` or in Unity's "
        "vectors",
    ),
    ("quaternions", "`wxyz`, body to world; field names end in `_wxyz`"),
    ("angular velocity", "world frame, rad/s"),
    ("body frame", "origin at the centre of mass"),
    (
        "camera",
        "OpenCV: x right, y down, z forward; `T_world_camera`; `K` in pixels, pixel centres at "
        "+0.5",
    ),
    (
        "depth",
        "planar (along the optical axis), metres, float32, `+inf` where nothing is hit",
    ),
    (
        "ids",
        "uint16, 0 is background, one sample per pixel, never antialiased; behind glass the label "
        "is what is seen through it, `glass_ids` holds the glass",
    ),
    ("normals", "unit, world frame, zero where nothing is hit"),
    ("flow", "pixels, float32, forward; never interpolated in time"),
    (
        "contacts",
        "one row per substep and contact point; normal from b to a; impulses in N s act on a",
    ),
    (
        "friction and restitution",
        "a pair's value is the product of its two bodies' values",
    ),
)
"""The rows of docs/reference/conventions.md that a reader of clips needs, word by word."""

_CODECS = {
    "bits_xor": "without loss: exclusive or of the bits with `plate/<layer>`",
    "bytes": "without loss, compressed",
    "h264": "without loss, compressed, beside the video",
}

_BUNDLE_FILES: tuple[tuple[str, str, str, str], ...] = (
    ("frames/00000.png, ...", "uint8 (H, W, 3)", "1", "colour as rendered, sRGB, without loss"),
    ("video.mp4", "H.264", "1", "the same, encoded"),
    ("masks.npz", "bool (T, N, H, W)", "1", "where each actor is seen, with `object_names`"),
    ("depth.npz", "float32 (T, H, W)", "m", "planar depth; 1e10 where nothing is hit"),
    (
        "trajectories.npz",
        "float32 (T, ...)",
        "m, m/frame, rad/frame",
        "of each actor `NAME_positions`, `NAME_rotations` (`wxyz`), `NAME_linear_velocity`, "
        "`NAME_angular_velocity`: differences of successive frames",
    ),
    ("contacts.json", "text", "m, N s", "contacts by frame and pair, with points and normals"),
    ("metadata.json", "text", "", "task, setting, seed, actors, camera, prompt"),
    ("prompt.txt", "text", "", "the prompt"),
    (
        "state.h5",
        "HDF5",
        "SI",
        "every substep's poses, velocities (m/s, rad/s) and contacts, scene, meshes, ids",
    ),
    ("SHA256SUMS", "text", "", "checksums of the bundle's files"),
)
_EXR_FILES: tuple[tuple[str, str, str, str], ...] = (
    ("depth/Depth_0000.exr, ...", "float32 (H, W)", "m", "the depth, one file a frame"),
    ("masks/IndexOB_0000.exr, ...", "float32 (H, W)", "1", "instance ids, one file a frame"),
)


# --- what is known of each maker ----------------------------------------------------------------


@dataclass(frozen=True)
class Maker:
    """What the card says of sets of one maker.

    Attributes:
        title: kind of the clips.
        about: what they show.
        command: what makes the set again.
        own: whether everything drawn is this package's own, unless a row says otherwise.
        limits: sentences.
        citation: BibTeX.
        tags: for searches.
    """

    title: str
    about: str
    command: Callable[[Mapping[str, Any], SetKind], str]
    own: bool
    limits: tuple[str, ...]
    citation: str
    tags: tuple[str, ...]


def _rigidbench_command(job: Mapping[str, Any], kind: SetKind) -> str:
    own = job["manifest"] != "file"
    words = ["wmeval generate rigidbench", "--manifest", job["manifest"] if own else "MANIFEST"]
    words += ["--seed", job["seed"]] if own else []
    words += ["--limit", kind.count(job), "--quality", job["quality"]]
    words += ["--renderer", job["renderer"], "--physics", job["physics"]]
    words += ["--width", job["width"], "--height", job["height"]]
    words += ["--tasks", ",".join(job["tasks"])] if job["tasks"] else []
    words += ["--each", job["each"]] if job.get("each") else []
    words += ["--materialize", ",".join(job["materialize"])] if job.get("materialize") else []
    words += ["--format", "bundle" if kind == BUNDLES else "store", "--out", "clips"]
    words += ["--exr"] if job.get("exr") else []
    return " ".join(map(str, words))


_WMEVAL = """\
@misc{wmeval,
  title = {{WMEval}: Evaluating Interactive World Models Grounded on Physical Simulations}
}"""

MAKERS: Mapping[str, Maker] = {
    "rigidbench": Maker(
        title="RigidBench tasks",
        about=(
            "Short simulated clips of everyday objects that fall, bounce, roll down ramps and "
            "strike each other in furnished rooms and outdoor places, seen by a still camera. "
            "Every clip comes with the exact state and contacts of every step of the simulation, "
            "depth and instance ids, a prompt, and the seed that makes it again. Tasks, intervals, "
            "physical numbers and splits follow RigidBench; rooms, objects and pictures are drawn "
            "by wmeval."
        ),
        command=_rigidbench_command,
        own=True,
        limits=(
            "Rooms and objects are wmeval's own, built by its code, not RigidBench's assets: "
            "numbers measured on these clips are not comparable with that paper's tables.",
            "Everything is rigid: nothing bends, breaks, spills or deforms.",
            "The camera frames what stands there at first: what is thrown off may leave the "
            "picture. An actor's `seen_share` in its clip's row says in what share of the frames "
            "it is seen.",
            "Prompts are filled-in English templates, one sentence a clip.",
            "A clip is one continuation that the simulation computes, not the only plausible one.",
        ),
        citation="""\
@misc{jain2026rigidbench,
  title = {{RigidBench}: Evaluating Rigid-Body Physics in Video Generation Models},
  author = {Jain, Swarnim and Wu, Shangzhe},
  year = {2026},
  eprint = {2608.15555},
  archivePrefix = {arXiv}
}""",
        tags=("rigid-body", "collisions"),
    ),
}

_UNKNOWN = Maker(
    title="clips",
    about=(
        "Simulated clips with the exact state and contacts of every step of the simulation, "
        "picture labels, a prompt each, and the seeds that make them again."
    ),
    command=lambda job, kind: "",
    own=False,
    limits=("A clip is one continuation that the simulation computes.",),
    citation="",
    tags=(),
)


# --- counting -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Clips by what they are of; each in ascending order of the names.

    Attributes:
        tasks, scenes, splits: clips by task, setting, partition.
        objects: clips in which an actor is of the object's card (or of the ramp's material).
        pictures: clips by (width, height, frames, fps).
        made_with: clips by engine, renderer and package, as rows state them.
        user_cards: clips made with a folder of a user's own cards; None where rows do not say.
        seconds: of video in all.
    """

    tasks: Mapping[str, int]
    scenes: Mapping[str, int]
    splits: Mapping[str, int]
    objects: Mapping[str, int]
    pictures: Mapping[tuple[int, int, int, str], int]
    made_with: Mapping[str, int]
    user_cards: int | None
    seconds: Fraction


def counts_of(rows: Sequence[Row]) -> Counts:
    """Count the clips of a set by its rows."""
    facts = [row["facts"] for row in rows]
    with_ = [row.get("made_with", {}) for row in rows]
    return Counts(
        tasks=_count(f["task_type"] for f in facts),
        scenes=_count(f["scene_id"] for f in facts),
        splits=_count(f["split"] for f in facts),
        objects=_count(name for f in facts for name in {a["object"] for a in f["actors"]} - {None}),
        pictures=_count((r["width"], r["height"], r["frames"], r["fps"]) for r in rows),
        made_with=_count(", ".join(m.get("versions", ())) for m in with_ if m.get("versions")),
        user_cards=sum(m["user_cards"] for m in with_)
        if all("user_cards" in m for m in with_)
        else None,
        seconds=sum((int(r["frames"]) / Fraction(r["fps"]) for r in rows), Fraction(0)),
    )


def _count(values: Iterable[Any]) -> dict[Any, int]:
    return dict(sorted(Counter(values).items()))


def stored_layers(job: Mapping[str, Any], rows: Sequence[Row]) -> tuple[Layer, ...]:
    """Picture layers that clips of a set keep without loss, in the order of `LAYERS`."""
    named = {name for row in rows for name in row.get("layers", job.get("layers", ()))}
    return tuple(layer for layer in LAYERS.values() if layer.name in named)


def size_category(count: int) -> str:
    """Size of a set as data-set hubs name it."""
    steps = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
    return next((name for limit, name in steps if count < limit), "100K<n<1M")


# --- the documents ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Card:
    """All that the documents of a set follow from.

    Attributes:
        kind: of the set.
        job: what it is made of.
        rows: of its finished clips, in order.
        manifest: the bytes of its manifest; None before it is complete.
    """

    kind: SetKind
    job: Mapping[str, Any]
    rows: Sequence[Row]
    manifest: bytes | None = None

    @property
    def maker(self) -> Maker:
        """What is known of whoever made it."""
        return MAKERS.get(str(self.job.get("maker")), _UNKNOWN)

    @property
    def title(self) -> str:
        """Name for people."""
        manifest = {"train": ", training", "eval": ", evaluation"}.get(
            str(self.job.get("manifest")), ""
        )
        return f"wmeval: {self.maker.title}{manifest}"

    @property
    def name(self) -> str:
        """Name for programs."""
        parts = ("wmeval", self.job.get("maker"), self.job.get("manifest"), self.kind.samples)
        return "-".join(re.sub(r"[^a-z0-9]+", "-", str(p).lower()).strip("-") for p in parts if p)

    @property
    def content_hash(self) -> str | None:
        """As its manifest states it; None before it is complete."""
        return None if self.manifest is None else sets.content_hash(self.rows)

    @property
    def own(self) -> bool:
        """Everything drawn is this package's own, as the maker and every row say."""
        said = (row.get("made_with", {}).get("user_cards") for row in self.rows)
        return self.maker.own and all(user is False for user in said)


def readme(card: Card) -> str:
    """The data-set card, with its YAML head."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wmeval.datasets", "templates"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["cell"] = _cell
    counted = counts_of(card.rows)
    asked = card.kind.count(card.job)
    return environment.get_template("card.md.j2").render(
        head=yaml.safe_dump(_head(card), sort_keys=False, allow_unicode=True, width=1000),
        card=card,
        maker=card.maker,
        asked=asked,
        counts=counted,
        tables=(
            ("task", counted.tasks),
            ("scene", counted.scenes),
            ("split", counted.splits),
            ("object among the actors", counted.objects),
        ),
        store=card.kind == CLIPS,
        command=card.maker.command(card.job, card.kind),
        job={k: _plain(v) for k, v in sorted(card.job.items()) if v not in (None, [], {})},
        layers=stored_layers(card.job, card.rows),
        materialized=card.job.get("materialize", ()),
        codecs=_CODECS,
        bundle_files=_BUNDLE_FILES + (_EXR_FILES if card.job.get("exr") else ()),
        conventions=CONVENTIONS,
        first=card.rows[0]["path"] if card.rows else f"{card.kind.samples}/...",
        citations=[c for c in (card.maker.citation, _WMEVAL) if c],
    )


def _head(card: Card) -> dict[str, Any]:
    licence: dict[str, Any] = {"license": "apache-2.0"}
    if not card.own:
        licence = {"license": "other", "license_name": "see-below", "license_link": README}
    return {
        **licence,
        "pretty_name": card.title,
        "language": ["en"],
        "task_categories": ["text-to-video", "image-to-video", "depth-estimation"],
        "size_categories": [size_category(len(card.rows))],
        "tags": ["synthetic", "simulation", "physics", "video", *card.maker.tags],
        # The store is no table; `wmeval export hf` writes what the viewer reads.
        "viewer": False,
    }


def metadata(card: Card, publication: Publication | None = None) -> str:
    """The Croissant document of a set."""
    sealed = card.manifest
    return croissant(
        card.name,
        description=card.maker.about,
        license="https://www.apache.org/licenses/LICENSE-2.0"
        if card.own
        else f"Licence of the assets that were used; see {README}.",
        citation=card.maker.citation or _WMEVAL,
        keywords=("synthetic", "simulation", "physics", "video", *card.maker.tags),
        kind=card.kind,
        rows=card.rows,
        manifest=None if sealed is None else (len(sealed), hashlib.sha256(sealed).hexdigest()),
        publication=publication,
    )


def index(card: Card, shown: frozenset[int]) -> str:
    """The page of a set; ``shown`` are the numbers of the clips that have a thumbnail."""
    opener = 'wmeval.open("SET")[{index}]'
    if card.kind == BUNDLES:
        opener = 'wmeval.datasets.bundle.read_bundle("SET/{path}")'
    links = [README, CROISSANT, *([MANIFEST] if card.manifest is not None else [])]
    return browse.page(
        card.title,
        rows=card.rows,
        asked=card.kind.count(card.job),
        shown=shown,
        links=links,
        opener=opener,
    )


def _plain(value: Any) -> str:
    """A setting as people write it."""
    if isinstance(value, list) and all(isinstance(x, str) for x in value):
        return ", ".join(value)
    return value if isinstance(value, str) else canonical(value)


def _cell(text: object) -> str:
    """Text as it stands in a cell of a Markdown table: nothing in it is markup."""
    flat = " ".join(str(text).split())
    return re.sub(r"([\\`*_{}\[\]<>|#&])", r"\\\1", flat)


# --- writing ------------------------------------------------------------------------------------


def write_card(
    place: Location, card: Card, *, publication: Publication | None = None, overwrite: bool = False
) -> tuple[str, ...]:
    """Write the documents of a set beside it; what is there already, byte for byte, stays.

    Args:
        place: the set.
        card: what it is.
        publication: what the set cannot know of itself; where it says nothing, what the Croissant
            document that is there says.
        overwrite: also replace what somebody has changed by hand, and forget what was said of the
            publication.

    Returns:
        Keys of the documents that were left as somebody has changed them.

    Raises:
        UserError: disk full, not writable.
    """
    shown = browse.put_missing_thumbnails(place, card.rows)
    kept = []
    for key, text in ((README, readme(card)), (INDEX, index(card, shown))):
        content = (text + _seal(text)).encode()
        there = place.get(key, limit=None)
        if there is not None and not overwrite and not is_ours(there):
            kept.append(key)
        elif there != content:
            place.put(key, content)
    there = place.get(CROISSANT, limit=None)
    told = publication or Publication()
    if not overwrite:
        said = published(there)
        told = Publication(
            told.url or said.url, told.creator or said.creator, told.date or said.date
        )
    content = metadata(card, told).encode()
    if there != content:
        place.put(CROISSANT, content)
    return tuple(kept)


def _seal(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"<!-- written by wmeval; sha256 of the lines above: {digest} -->\n"


def is_ours(content: bytes) -> bool:
    """A document is as it was written here: nobody has changed it since."""
    text = content.decode("utf-8", "replace")
    match = _SEAL.search(text)
    return match is not None and _seal(text[: match.start()]) == match[0]


def check_card(place: Location, kind: SetKind) -> tuple[list[str], list[str]]:
    """Re-check the documents of a set by the seals that they carry.

    Nobody can tell a README.md or index.html that somebody has changed, which is allowed, from one
    that was damaged: that is a note. croissant.json is always written by this package.

    Args:
        place: the set.
        kind: what set it is.

    Returns:
        Problems, and notes: one sentence each.
    """
    mend = f"`wmeval describe {place.url}` writes it"
    problems, notes = [], []
    manifest = place.get(MANIFEST, limit=None)
    for key in (README, INDEX, CROISSANT):
        content = place.get(key, limit=None)
        where = f"{place.url}/{key}"
        if content is None:
            if manifest is not None:
                notes.append(f"{where}: is missing; {mend}.")
        elif key != CROISSANT:
            if not is_ours(content):
                notes.append(
                    f"{where}: changed by hand, so nothing tells whether it is whole; {mend} anew "
                    "with --overwrite."
                )
        else:
            sha256 = None if manifest is None else hashlib.sha256(manifest).hexdigest()
            wrong = sealed_for(content, sha256)
            if wrong:
                problems.append(f"{where}: {wrong}; {mend} anew.")
    return problems, notes


def forget_card(place: Location) -> None:
    """Remove the documents of a set that is going to be another; what somebody wrote stays."""
    for key in (README, INDEX):
        content = place.get(key, limit=None)
        if content is not None and is_ours(content):
            place.remove(key)
    place.remove(CROISSANT)


@dataclass(frozen=True)
class Described:
    """What `describe_set` came to.

    Attributes:
        url: the set.
        clips: clips that its documents tell of.
        kept: documents that were left as somebody has changed them.
        what: they are, one of them in a word.
    """

    url: str
    clips: int
    kept: tuple[str, ...]
    what: str = "clip"


def describe_set(
    url: str | Path, *, publication: Publication | None = None, overwrite: bool = False
) -> Described:
    """Write the card and the page of a set of clips, complete or not.

    A set that is being made may be described meanwhile; when it is complete, that is done anew.

    Args:
        url: the set.
        publication: what the set cannot know of itself.
        overwrite: also replace a README.md or index.html that somebody has changed by hand, and
            forget an earlier ``publication``.

    Raises:
        UserError: no set of clips here, a damaged one, disk full, or not writable.
    """
    place = locate(url)
    kind = sets.kind_of(place)
    if kind is None:
        raise CLIPS.nothing(place)
    if kind not in KINDS:
        raise UserError(f"{place.url}: a set of {kind.what}, not of clips: it has no card.")
    job, rows = sets.read_rows(place, kind)
    card = Card(kind, job, rows, place.get(MANIFEST, limit=None))
    kept = write_card(place, card, publication=publication, overwrite=overwrite)
    return Described(place.url, len(rows), kept, kind.what.removesuffix("s"))
