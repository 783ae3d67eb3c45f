"""A sample: everything that one row of a manifest fixes, from its one seed (RigidBench, A.1-A.4).

The order of draws: dimensions and objects of the layout (again while it fits the support at no
rotation), the order in which rotations are tried, the camera among those that see enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets.cards import Library, TaskCard
from wmeval.conventions import intrinsics, look_at
from wmeval.envs.rigidbench import framing
from wmeval.envs.rigidbench.layout import Actor, Layout, draw_layout, fits
from wmeval.envs.rigidbench.physics import FPS, FRAMES, Physics, physics_mode
from wmeval.envs.rigidbench.place import Place, place_of
from wmeval.envs.rigidbench.prompts import NEGATIVE_PROMPT, fill, full_prompt
from wmeval.envs.rigidbench.rows import Row, check_row
from wmeval.envs.rigidbench.search import Search
from wmeval.envs.rigidbench.shapes import Models, Shape, shape_of
from wmeval.errors import UserError
from wmeval.scene import Body, Camera, Material, MeshData, Scene
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules

F8 = NDArray[np.float64]

MAIN_VIEW = "main"
ROTATIONS = 8
"""Rotations of the task that the camera search tries (section A.3)."""
TURN_STEP_DEG = 5.0
"""Rotations are drawn from a grid that holds the support's own axes."""
MOST_LAYOUTS = 64
"""Layouts drawn before a support is called too small."""

ACTIVE, PASSIVE = "active", "passive"
"""Roles of actors: objects, ramps."""
SUPPORT_ROLE = "support"

RULES = EventRules(
    contact_roles=(
        (ACTIVE, ACTIVE), (ACTIVE, PASSIVE), (ACTIVE, SUPPORT_ROLE), (ACTIVE, "ground"),
    ),
    impact_impulse=1e-3,
)  # fmt: skip


@dataclass(frozen=True)
class SampleActor:
    """An actor of a sample.

    Attributes:
        name: of its body.
        role: active or passive.
        object: id of the object's card; of a ramp, of its material's.
        instance: in label layers, 1 and up.
    """

    name: str
    role: str
    object: str
    instance: int


@dataclass(frozen=True, eq=False)
class Sample:
    """A clip before it is simulated.

    Attributes:
        row: what it was drawn from.
        physics: how it is simulated.
        scene: setting, ramps and objects; camera "main" is its first.
        meshes: by content hash.
        drivers: none: nothing changes but by physics.
        rules: what counts as an event.
        layout: in the task's frame.
        turn_deg: of the task's x axis from the world's +x about z [deg].
        azimuth_deg: of the camera in the world [deg].
        share: least share of an actor's surface points that the camera sees.
        prompt: the task's sentence.
        actors: in the order of their instances.
    """

    row: Row
    physics: Physics
    scene: Scene
    meshes: Mapping[str, MeshData]
    layout: Layout
    turn_deg: float
    azimuth_deg: float
    share: float
    prompt: str
    actors: tuple[SampleActor, ...]
    drivers: tuple[DriverSpec, ...] = ()
    rules: EventRules = RULES
    negative_prompt: str = field(default=NEGATIVE_PROMPT)

    @property
    def camera(self) -> Camera:
        """The clip's camera."""
        return self.scene.cameras[0]

    @property
    def config(self) -> EngineConfig:
        """Of the engine ``physics.engine``."""
        return self.physics.config

    @property
    def full_prompt(self) -> str:
        """What a video model is told."""
        return full_prompt(self.prompt)

    def metadata(
        self, *, width: int, height: int, fps: float = FPS, frames: int = FRAMES
    ) -> dict[str, JsonValue]:
        """What the sample is (Table 8, metadata.json), as JSON values.

        Args:
            width: of the clip's pictures [px].
            height: of the clip's pictures [px].
            fps: frames a second.
            frames: of the clip.
        """
        camera = self.camera
        fov_y = math.radians(camera.fov_y_deg)
        length, across = self.layout.footprint
        return {
            "sample_id": self.row.sample_id,
            "task": self.row.task_type,
            "scene": self.row.scene_id,
            "surface": self.row.surface_name,
            "seed": self.row.seed,
            "partition": self.row.split,
            "objects": list(self.row.objects),
            "physics": self.physics.name,
            "engine": self.physics.engine,
            "task_rotation_deg": self.turn_deg,
            "camera_azimuth_deg": self.azimuth_deg,
            "camera_elevation_deg": math.degrees(framing.ELEVATION),
            "visible_share": self.share,
            "footprint_m": [length, across],
            "actors": [self._told(actor) for actor in self.actors],
            "camera": {
                "intrinsics_px": intrinsics(fov_y, width, height).tolist(),
                "T_world_camera": look_at(
                    np.array(camera.position), np.array(camera.target)
                ).tolist(),
                "position_m": list(camera.position),
                "target_m": list(camera.target),
                "lens_mm": framing.LENS_MM,
                "sensor_mm": framing.SENSOR_MM,
            },
            "resolution": [width, height],
            "fps": fps,
            "frames": frames,
            "prompt": self.prompt,
            "full_prompt": self.full_prompt,
            "negative_prompt": self.negative_prompt,
        }

    def _told(self, actor: SampleActor) -> dict[str, JsonValue]:
        body = self.scene.bodies[self.scene.index(actor.name)]
        size = next(a.size for a in self.layout.actors if a.name == actor.name)
        return {
            "name": actor.name,
            "role": actor.role,
            "object": actor.object,
            "instance": actor.instance,
            "size_m": list(size),
            "mass_kg": body.mass,
            "friction": body.friction,
            "restitution": body.restitution,
        }


def draw_sample(
    row: Row,
    library: Library,
    *,
    width: int = 1280,
    height: int = 704,
    physics: str = "bullet",
    task: TaskCard | None = None,
    turn_deg: float | None = None,
    azimuth_deg: float | None = None,
) -> Sample:
    """The sample of a manifest's row.

    Args:
        row: task, setting, support, seed and objects.
        library: all cards.
        width: of the pictures [px]; with ``height`` it sets the camera's field of view alone.
        height: of the pictures [px].
        physics: row of `wmeval.envs.rigidbench.physics.PHYSICS`.
        task: a card in place of the row's own, with some of its intervals narrowed.
        turn_deg: rotation of the task from the support's long axis [deg]; None draws.
        azimuth_deg: of the camera about the task [deg], 0: it looks along the task's x axis; None
            searches.

    Raises:
        UserError: an unknown name, or no layout of the task fits the support; one clear message.
    """
    check_row(row, library, task)
    mode = physics_mode(physics)
    card = library.tasks[row.task_type] if task is None else task
    place = place_of(library, row.scene_id, row.surface_name)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(row.seed)))
    layout, turns = _laid_out(card, library, row, place, rng, turn_deg)
    shapes = [shape_of(actor, library) for actor in layout.actors]
    ranges = card.camera_deg if azimuth_deg is None else ((azimuth_deg, azimuth_deg),)
    search = Search(place, layout, shapes, ranges, width=width, height=height)
    view = framing.choose_view(turns, ranges, search.share, rng)
    actors = tuple(
        SampleActor(a.name, ACTIVE if a.active else PASSIVE, _card_id(a), i)
        for i, a in enumerate(layout.actors, 1)
    )
    bodies = list(place.bodies(card, mode))
    taken = {body.name for body in bodies} & {actor.name for actor in layout.actors}
    if taken:
        raise UserError(
            f"task {card.id!r}: setting {row.scene_id!r} has a {min(taken)!r} itself: call the "
            "slot otherwise"
        )
    for actor, known, shape, pose in zip(
        layout.actors, actors, shapes, search.poses(view.turn_deg), strict=True
    ):
        bodies.append(_body(actor, known, shape, pose, library, mode))
    camera = search.camera(view.turn_deg, view.azimuth_deg)
    scene = Scene(
        name=f"RigidBench {row.task_type} in {row.scene_id}",
        bodies=tuple(bodies),
        materials=_materials([place.materials, *(s.materials for s in shapes)]),
        cameras=(camera, *search.others(camera)),
        sun=place.setting.sun.model_copy(update={"focus": framing.focus(camera)}),
        sky=place.setting.sky,
    )
    meshes = dict(place.meshes)
    for shape in shapes:
        meshes |= shape.meshes
    return Sample(
        row=row,
        physics=mode,
        scene=scene,
        meshes=meshes,
        layout=layout,
        turn_deg=view.turn_deg % 360.0,
        azimuth_deg=view.azimuth_deg,
        share=view.share,
        prompt=_sentence(card, layout, library),
        actors=actors,
    )


def prompt_of(row: Row, library: Library) -> str:
    """What a video model is told of a row's sample, without looking for its camera.

    Args:
        row: of a manifest.
        library: all cards.

    Raises:
        UserError: as `draw_sample`.
    """
    check_row(row, library)
    card = library.tasks[row.task_type]
    place = place_of(library, row.scene_id, row.surface_name)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(row.seed)))
    layout, _ = _laid_out(card, library, row, place, rng, None)
    return full_prompt(_sentence(card, layout, library))


# --- parts ---


def _sentence(card: TaskCard, layout: Layout, library: Library) -> str:
    phrases = {a.name: library.objects[a.object].phrase for a in layout.actors if a.object}
    return fill(card.prompt, phrases)


def _body(
    actor: Actor,
    known: SampleActor,
    shape: Shape,
    pose: tuple[F8, F8],
    library: Library,
    mode: Physics,
) -> Body:
    position, quaternion = pose
    x, y, z = position.tolist()
    w, i, j, k = quaternion.tolist()
    shared: dict[str, Any] = {
        "name": actor.name,
        "role": known.role,
        "instance": known.instance,
        "collision": (shape.collision[mode.exact_balls],),
        "visuals": shape.visuals,
        "position": (x, y, z),
        "quaternion_wxyz": (w, i, j, k),
    }
    if actor.object is None:
        return Body(
            motion="static",
            friction=mode.passive_friction,
            restitution=mode.passive_restitution,
            **shared,
        )
    card = library.objects[actor.object].physics
    return Body(
        motion="dynamic",
        mass=card.mass,
        friction=card.friction,
        restitution=card.restitution,
        linear_damping=mode.linear_damping,
        angular_damping=mode.angular_damping,
        **shared,
    )


def _card_id(actor: Actor) -> str:
    if actor.wedge is not None:
        return actor.wedge.material
    assert actor.object is not None
    return actor.object


def _materials(groups: Sequence[Sequence[Material]]) -> tuple[Material, ...]:
    out: dict[str, Material] = {}
    for material in (m for group in groups for m in group):
        if out.setdefault(material.name, material) != material:
            raise UserError(
                f"two assets of one sample have a material {material.name!r} each: rename one"
            )
    return tuple(out.values())


def _laid_out(
    card: TaskCard,
    library: Library,
    row: Row,
    place: Place,
    rng: np.random.Generator,
    turn_deg: float | None,
) -> tuple[Layout, list[float]]:
    """A layout that fits the support, and world rotations [deg] at which it does, in order."""
    surface = library.settings[row.scene_id].surfaces[row.surface_name]
    grid = np.arange(0.0, 360.0, TURN_STEP_DEG) if turn_deg is None else np.array([turn_deg])
    least: tuple[float, float] = (math.inf, math.inf)
    for _ in range(MOST_LAYOUTS):
        layout = draw_layout(card, library, row.objects, Models(library), rng)
        footprint = layout.footprint
        least = min(least, footprint)
        if place.radius is not None and layout.reach > place.radius:
            continue
        fit = [a for a in grid.tolist() if fits(footprint, surface.size, math.radians(a))]
        if fit:
            order = rng.permutation(len(fit))[:ROTATIONS].tolist()
            return layout, [surface.long_axis_deg + fit[i] for i in order]
    at = "any rotation" if turn_deg is None else f"a rotation of {turn_deg:g} degrees"
    raise UserError(
        f"sample {row.sample_id!r}: no layout of {card.id!r} fits support {row.surface_name!r} of "
        f"{row.scene_id!r}, {surface.size[0]:g} x {surface.size[1]:g} m, at {at}: the shortest of "
        f"{MOST_LAYOUTS} needs {least[0]:.2f} x {least[1]:.2f} m; choose another support or "
        "smaller objects"
    )
