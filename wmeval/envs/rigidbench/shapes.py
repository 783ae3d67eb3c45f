"""What a sample's actors are made of: objects from their models, ramps from their dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wmeval.assets.cards import Builtin, Library, ObjectCard
from wmeval.assets.meshes import merge
from wmeval.assets.meshes import wedge as wedge_mesh
from wmeval.assets.ramps import ramp_material
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.rigidbench import framing
from wmeval.envs.rigidbench.layout import Actor, Wedge
from wmeval.envs.rigidbench.sight import Solid, solid_of
from wmeval.scene import Collision, Material, Mesh, MeshData, Quat, Vec3, Visual

if TYPE_CHECKING:
    from wmeval.assets.models import Model


class Models(Mapping[str, Vec3]):
    """Objects' models by id, built when needed; as a mapping it gives their sizes."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def model(self, name: str) -> Model:
        """Built once in a process.

        Raises:
            UserError: its file or builder is missing.
        """
        return _built_model(*_key(self._library, name))

    def __getitem__(self, name: str) -> Vec3:
        asset = self._library.objects[name].asset
        if isinstance(asset, Builtin) and asset.size_m is not None:
            return asset.size_m
        return self.model(name).size

    def __contains__(self, name: object) -> bool:
        return name in self._library.objects

    def __iter__(self) -> Iterator[str]:
        return iter(self._library.objects)

    def __len__(self) -> int:
        return len(self._library.objects)


def _key(library: Library, name: str) -> tuple[str, str, str]:
    """What a model follows from: the card, the folder that its file lies in, the file's bytes."""
    card, folder = library.objects[name], library.folders[f"objects/{name}"]
    return card.model_dump_json(), str(folder), library.file_digest("objects", name)


@lru_cache(maxsize=128)
def _built_model(card_json: str, folder: str, digest: str) -> Model:
    from wmeval.assets.models import build_object
    from wmeval.sim.blend_files import as_glb

    return build_object(ObjectCard.model_validate_json(card_json), Path(folder), as_glb)


@dataclass(frozen=True, eq=False)
class Shape:
    """What an actor is made of, in its body's frame.

    Attributes:
        center: middle of the box that the layout places [m].
        turn: body's frame to the layout's frame of the actor, ``wxyz``.
        collision: by whether balls collide as balls.
    """

    visuals: tuple[Visual, ...]
    collision: Mapping[bool, Collision]
    materials: tuple[Material, ...]
    meshes: Mapping[str, MeshData]
    solid: Solid
    center: Vec3
    turn: Quat


def shape_of(actor: Actor, library: Library) -> Shape:
    """The shape of an actor; an object's is made once in a process.

    Raises:
        UserError: its asset is missing, or of a kind that is not built in.
    """
    if actor.wedge is not None:
        return _ramp_shape(actor.wedge, library)
    assert actor.object is not None
    return _object_shape(*_key(library, actor.object))


@lru_cache(maxsize=128)
def _object_shape(card_json: str, folder: str, digest: str) -> Shape:
    model = _built_model(card_json, folder, digest)
    points = framing.surface_points(merge([p.mesh for p in model.parts]))
    upright = quaternion_to_matrix(np.array(model.turn))
    x, y, z = (np.array(model.box_center) @ upright).tolist()
    return Shape(
        visuals=model.visuals(),
        collision={exact: model.collision(exact_balls=exact) for exact in (True, False)},
        materials=model.materials(),
        meshes=model.meshes(),
        solid=solid_of(model.hull, points),
        center=(x, y, z),
        turn=model.turn,
    )


def _ramp_shape(wedge: Wedge, library: Library) -> Shape:
    material = ramp_material(library.materials[wedge.material])
    # It rises along +x about its centre of mass; the layout's wedge falls along +x.
    mesh = wedge_mesh(wedge.length, wedge.width, wedge.height)
    key = mesh.content_hash()
    collision = Collision(shape=Mesh(sha256=key, convex=False))
    return Shape(
        visuals=(Visual(shape=Mesh(sha256=key), material=material.name),),
        collision={True: collision, False: collision},
        materials=(material,),
        meshes={key: mesh},
        solid=solid_of(mesh, framing.surface_points(mesh)),
        center=(-wedge.length / 6, 0.0, wedge.height / 6),
        turn=(0.0, 0.0, 0.0, 1.0),
    )
