"""Cards of the RigidBench kind: objects, ramp materials, settings (rooms) and tasks, as YAML.

A card says what a thing is in numbers; a builder of this package, or a user's own file, gives its
shape and look. An asset folder on the command line overrides cards by id. Identifiers, masses,
friction, restitution, tags, support surfaces and every interval follow the released configuration
of RigidBench (sections A.1 to A.3, Tables 4 and 5); sizes are of the real things, and ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, Field, JsonValue, ValidationError, model_validator

from wmeval.assets.asset_files import asset_digest
from wmeval.errors import UserError, first_problem, one_line
from wmeval.scene import Card

Tag = Literal["all", "rolling", "stackable", "bouncy"]


def _ascending(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    if not low <= high:
        raise ValueError(f"[{low}, {high}] does not ascend")
    return interval


Interval = Annotated[tuple[float, float], AfterValidator(_ascending)]
"""Lower and upper end; values are drawn uniformly in between."""

# Ranges of what stands on a table or on the floor of a room, with room to spare [m].
_Side = Annotated[float, Field(ge=0.005, le=3)]
_Ramp = Annotated[float, Field(ge=0.02, le=5)]
_Way = Annotated[float, Field(ge=0, le=5)]
_Extent = Annotated[float, Field(ge=0.05, le=100)]
_Height = Annotated[float, Field(ge=0.005, le=20)]
_Place = Annotated[float, Field(ge=-1000, le=1000)]
_Turn = Annotated[float, Field(ge=-720, le=720)]
Sides = Annotated[tuple[_Ramp, _Ramp], AfterValidator(_ascending)]
Way = Annotated[tuple[_Way, _Way], AfterValidator(_ascending)]
Height = Annotated[tuple[_Height, _Height], AfterValidator(_ascending)]
Turn = Annotated[tuple[_Turn, _Turn], AfterValidator(_ascending)]
Friction = Annotated[float, Field(ge=0, le=5)]
Restitution = Annotated[float, Field(ge=0, le=1)]
Scale = Annotated[float, Field(ge=1e-6, le=1e6)]

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Slot = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]
Named = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^\S(.*\S)?$")]
"""A word or several on one line."""


# --- where a shape comes from -------------------------------------------------------------------


class Builtin(Card):
    """Made by a builder of this package.

    Attributes:
        builder: row of the table of builders of its kind.
        size_m: extents along x, y, z as it stands [m]; None where the builder knows.
    """

    source: Literal["builtin"]
    builder: Named
    size_m: tuple[_Side, _Side, _Side] | None = None


class File(Card):
    """A user's own file.

    Attributes:
        path: .blend, .glb, .gltf, .obj, .ply or .stl, relative to its card.
        scale: factor on the file's units to metres.
    """

    source: Literal["file"]
    path: str = Field(min_length=1, max_length=1000)
    scale: Scale = 1.0


class BlenderKit(Card):
    """An asset of the BlenderKit library, as the released cards name them.

    It cannot be fetched from here: fetch it with Blender, save it, and give a card with its file.
    """

    source: Literal["blenderkit"]
    type: Literal["model", "scene", "material"]
    id: str
    scale: Scale = 1.0


Asset = Annotated[Builtin | File | BlenderKit, Field(discriminator="source")]


# --- objects and materials ----------------------------------------------------------------------


class ObjectPhysics(Card):
    """Physical numbers of an object.

    Attributes:
        mass: [kg].
        friction: Coulomb coefficient; the pair value is the product.
        restitution: the pair value is the product.
        collision_shape: what collides.
    """

    mass: float = Field(ge=1e-3, le=1000)
    friction: Friction
    restitution: Restitution
    collision_shape: Literal["CONVEX_HULL"] = "CONVEX_HULL"


class ObjectCard(Card):
    """An everyday object.

    Attributes:
        id, name: identifier; name in prompts.
        asset: where its shape and look come from.
        physics: its physical numbers.
        tags: roles that it may play.
    """

    id: Id
    name: Named
    asset: Asset
    physics: ObjectPhysics
    tags: tuple[Tag, ...] = Field(min_length=1)

    @property
    def phrase(self) -> str:
        """Name with the indefinite article, lower case: "an apple"."""
        name = self.name[0].lower() + self.name[1:] if not self._proper else self.name
        return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"

    @property
    def _proper(self) -> bool:
        # A name of several capitalised words is a proper name, and keeps them.
        return any(word[0].isupper() for word in self.name.split()[1:]) or "'" in self.name


class MaterialCard(Card):
    """A ramp's material: its look alone, physics is the passive default."""

    id: Id
    name: Named
    asset: Asset


# --- settings -----------------------------------------------------------------------------------


class Surface(Card):
    """A level support.

    Attributes:
        center: middle of the support [m], world frame.
        size: extents along its long and its short axis [m].
        long_axis_deg: direction of the long axis from +x about z [deg].
        clutter_hide: names of what the layout removes from it.
    """

    center: tuple[_Place, _Place, _Place]
    size: tuple[_Extent, _Extent]
    long_axis_deg: _Turn = 0.0
    clutter_hide: tuple[str, ...] = ()


class SettingCard(Card):
    """A room or outdoor place with named supports (RigidBench calls it a scene)."""

    id: Id
    name: Named
    asset: Asset
    surfaces: dict[Named, Surface] = Field(min_length=1)


# --- tasks --------------------------------------------------------------------------------------


# A placement's ``objects`` are the ids that it is drawn from, whatever their tags; none: those that
# the sample may use and that have the tag.


class Drop(Card):
    """An object above the support, let go: ``height_m`` from the support to its middle."""

    kind: Literal["drop"]
    slot: Slot
    tags: Tag
    objects: tuple[str, ...] = ()
    height_m: Height


class Ramp(Card):
    """A wedge on the support.

    Attributes:
        facing: the way down its slope, along the layout's x axis.
        gap_m: to the ramp that faces it [m]; both draw the same value.
    """

    kind: Literal["ramp"]
    slot: Slot
    length_m: Sides
    height_m: Sides
    width_m: Sides
    facing: Literal["forward", "backward"] = "forward"
    gap_m: Way | None = None


class OnRamp(Card):
    """An object on a ramp's slope, rolling axis across it.

    Attributes:
        ramp: slot of the ramp.
        position: from the top, as a fraction of the slope.
    """

    kind: Literal["on_ramp"]
    slot: Slot
    tags: Tag
    objects: tuple[str, ...] = ()
    ramp: str
    position: float = Field(ge=0, le=1)


class Line(Card):
    """Objects in a row in front of a ramp: ``distance_m`` to the first, ``gap_m`` in between."""

    kind: Literal["line"]
    slot: Slot
    tags: Tag
    objects: tuple[str, ...] = ()
    count: int = Field(ge=1, le=20)
    in_front_of: str
    distance_m: Way
    gap_m: Way


class Cluster(Card):
    """Objects in a ring, neighbours ``gap_m`` apart."""

    kind: Literal["cluster"]
    slot: Slot
    tags: Tag
    objects: tuple[str, ...] = ()
    count: int = Field(ge=2, le=20)
    gap_m: Way


Placement = Annotated[Drop | Ramp | OnRamp | Line | Cluster, Field(discriminator="kind")]


class SurfacePhysics(Card):
    """Physics of the support where a task changes it."""

    friction: Friction
    restitution: Restitution


class TaskCard(Card):
    """One of the five tasks (Table 4).

    Attributes:
        id: identifier.
        placements: what is put where, in order.
        support: physics of the support; None leaves the passive default.
        ramp_materials: ids that ramps draw from.
        prompt: template; ``{slot}`` becomes the object's name with its article; of several in one
            slot ``{slot_0}`` and so on.
        camera_deg: intervals of the camera's azimuth about the layout [deg]; at 0 it looks along
            the layout's x axis, down the first ramp.
    """

    id: Id
    placements: tuple[Placement, ...] = Field(min_length=1)
    support: SurfacePhysics | None = None
    ramp_materials: tuple[str, ...] = ()
    prompt: str = Field(min_length=1, max_length=1000)
    camera_deg: tuple[Turn, ...] = Field(min_length=1)

    @property
    def actors(self) -> tuple[str, ...]:
        """Names of what it puts there, in order."""
        return tuple(name for p in self.placements for name in _actors(p))

    @model_validator(mode="after")
    def _check(self) -> TaskCard:
        names = [*self.actors, *(p.slot for p in self.placements if p.slot not in self.actors)]
        twice = sorted({s for s in names if names.count(s) > 1})
        if twice:
            raise ValueError(f"slot {twice[0]!r} twice")
        ramps = {p.slot for p in self.placements if isinstance(p, Ramp)}
        for placement in self.placements:
            needed = {"on_ramp": "ramp", "line": "in_front_of"}.get(placement.kind)
            if needed and getattr(placement, needed) not in ramps:
                raise ValueError(f"slot {placement.slot!r}: no ramp {getattr(placement, needed)!r}")
        if ramps and not self.ramp_materials:
            raise ValueError("ramps need ramp_materials")
        things = [n for p in self.placements if not isinstance(p, Ramp) for n in _actors(p)]
        unknown = [name for name in PROMPT_SLOT.findall(self.prompt) if name not in things]
        if unknown:
            raise ValueError(
                f"prompt: no object in slot {unknown[0]!r}: choose from {', '.join(things)}"
            )
        return self


PROMPT_SLOT = re.compile(r"\{(\w+)\}")
"""What a prompt's template leaves open."""


def _actors(placement: Placement) -> tuple[str, ...]:
    if isinstance(placement, Line | Cluster):
        return tuple(f"{placement.slot}_{i}" for i in range(placement.count))
    return (placement.slot,)


# --- the library --------------------------------------------------------------------------------


class Partition(Card):
    """Settings and objects of one side of the split (Table 5)."""

    scenes: tuple[str, ...]
    objects: tuple[str, ...]


class Splits(Card):
    """What is trained on and what is held out."""

    tasks: tuple[str, ...]
    train: Partition
    held_out: Partition


@dataclass(frozen=True, eq=False)
class Library:
    """All cards by id.

    Attributes:
        folders: where the card of "kind/id" lies; a `File`'s path is relative to it.
    """

    objects: Mapping[str, ObjectCard]
    materials: Mapping[str, MaterialCard]
    settings: Mapping[str, SettingCard]
    tasks: Mapping[str, TaskCard]
    splits: Splits
    folders: Mapping[str, Traversable | Path]

    def tagged(self, tag: Tag, among: tuple[str, ...]) -> tuple[str, ...]:
        """Ids among the given ones with a tag, in their order."""
        return tuple(i for i in among if tag in self.objects[i].tags)

    def file_digest(self, kind: str, name: str) -> str:
        """Sha256 of the file of a card, "" where it has none: ``objects``, ``orange``.

        Raises:
            UserError: the file is not there.
        """
        asset = getattr(self, kind)[name].asset
        if not isinstance(asset, File):
            return ""
        folder = Path(str(self.folders[f"{kind}/{name}"]))
        return asset_digest(folder / asset.path, f"{kind.removesuffix('s')} {name!r}")

    def document(self) -> list[JsonValue]:
        """All cards and the digests of the files that they name: what a sample's row means.

        Raises:
            UserError: a file is not there.
        """
        told: list[JsonValue] = [
            {name: card.model_dump(mode="json") for name, card in getattr(self, kind).items()}
            for kind in _KINDS
        ]
        found = {
            f"{kind}/{name}": self.file_digest(kind, name)
            for kind in _KINDS
            if kind != "tasks"
            for name in getattr(self, kind)
        }
        files: dict[str, JsonValue] = {key: digest for key, digest in found.items() if digest}
        return [*told, *([files] if files else [])]


_KINDS: dict[str, type[Card]] = {
    "objects": ObjectCard,
    "materials": MaterialCard,
    "settings": SettingCard,
    "tasks": TaskCard,
}
_ALIASES = {"settings": ("settings", "scenes")}
"""Folder names: the released configuration calls settings scenes."""


def library(assets: str | Path | None = None) -> Library:
    """The built-in cards, with those of a user's asset folder in their place.

    Args:
        assets: folder with ``objects/``, ``materials/``, ``settings/`` (or ``scenes/``) of YAML
            cards; a card replaces the built-in one of its id, or adds one.

    Raises:
        UserError: no such folder, or a card that is wrong; the message names file and field.
    """
    built_in = _builtin()
    if assets is None:
        return built_in
    root = Path(assets)
    if not root.is_dir():
        raise UserError(f"asset folder {root} does not exist: give a folder of cards")
    cards, folders = _read(root)
    if not folders:
        raise UserError(
            f"asset folder {root} holds no card: put YAML files into objects/, materials/ or "
            "settings/"
        )
    own = Library(
        {**built_in.objects, **cards["objects"]},
        {**built_in.materials, **cards["materials"]},
        {**built_in.settings, **cards["settings"]},
        {**built_in.tasks, **cards["tasks"]},
        built_in.splits,
        {**built_in.folders, **folders},
    )
    for task in cards["tasks"]:
        _check_names(own, f"card {folders[f'tasks/{task}']}/{task}", own.tasks[task])
    return own


def _refuse_unfetched(root: Path, cards: Mapping[str, Any]) -> None:
    """Say at once that BlenderKit's assets, as the released cards name them, are not read."""
    unfetched = [
        f"{kind}/{card.id}"
        for kind in _KINDS
        if kind != "tasks"
        for card in cards[kind].values()
        if isinstance(card.asset, BlenderKit)
    ]
    if unfetched:
        more = f" and {len(unfetched) - 1} more" if len(unfetched) > 1 else ""
        raise UserError(
            f"asset folder {root}: BlenderKit's assets are not read ({unfetched[0]}{more}): save "
            "them as .glb and give asset: {source: file, path: NAME.glb}; the built-in cards have "
            "the released numbers"
        )


def _check_names(cards: Library, where: str, task: TaskCard) -> None:
    """Whether a task's materials and objects have cards."""
    named: list[tuple[str, str, Mapping[str, Card]]] = [
        ("ramp_materials", name, cards.materials) for name in task.ramp_materials
    ]
    for placement in task.placements:
        if not isinstance(placement, Ramp):
            field = f"placements, slot {placement.slot!r}: objects"
            named += [(field, name, cards.objects) for name in placement.objects]
    for field, name, known in named:
        if name not in known:
            raise UserError(f"{where}: {field}: no card {name!r}: choose from {', '.join(known)}")


@cache
def _builtin() -> Library:
    root = files("wmeval.assets").joinpath("rigidbench")
    cards, folders = _read(root)
    splits = _card(root.joinpath("splits.yaml"), Splits)
    return Library(
        cards["objects"], cards["materials"], cards["settings"], cards["tasks"], splits, folders
    )


def _read(root: Traversable | Path) -> tuple[dict[str, Any], dict[str, Traversable | Path]]:
    cards: dict[str, Any] = {kind: {} for kind in _KINDS}
    folders: dict[str, Traversable | Path] = {}
    for kind, model in _KINDS.items():
        if kind == "tasks" and isinstance(root, Path):
            _refuse_unfetched(root, cards)
        for name in _ALIASES.get(kind, (kind,)):
            folder = root.joinpath(name)
            if not folder.is_dir():
                continue
            for entry in sorted(folder.iterdir(), key=lambda e: e.name):
                if not entry.name.endswith((".yaml", ".yml")):
                    continue
                card: Any = _card(entry, model)
                if card.id != entry.name.rsplit(".", 1)[0]:
                    raise UserError(f"card {entry}: id = {card.id!r}: name the file like its id")
                cards[kind][card.id] = card
                folders[f"{kind}/{card.id}"] = folder
    return cards, folders


_C = TypeVar("_C", bound=Card)


def _card(entry: Traversable | Path, model: type[_C]) -> _C:
    try:
        document = yaml.safe_load(entry.read_text("utf-8"))
        if model is TaskCard and isinstance(document, dict) and "prompt_template" in document:
            raise UserError(
                f"card {entry}: tasks in the released form (prompt_template, camera_range) are not "
                "read: leave it out for the built-in one, or write it as the guide to assets shows"
            )
        return model.model_validate(document)
    except ValidationError as error:
        raise UserError(f"card {entry}: {first_problem(error)}") from error
    except UserError:
        raise
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"card {entry}: {one_line(error)}") from error
