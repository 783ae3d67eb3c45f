"""The Scene: what a world is made of, for any engine and any renderer.

Frozen pydantic models with an exact JSON round trip; unknown keys are refused. A Scene never
changes: what appears and vanishes is a fixed pool of slots whose ``active`` flag lives in the
state. Meshes travel beside the Scene in a mapping from content hash to `MeshData`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]
Color = tuple[float, float, float]
IDENTITY: Quat = (1.0, 0.0, 0.0, 0.0)

STATIC, KINEMATIC, DYNAMIC = 0, 1, 2
MOTIONS = ("static", "kinematic", "dynamic")


class Card(BaseModel):
    """Base of everything that is read from JSON or YAML: frozen, finite, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, eq=False)
class MeshData:
    """A triangle mesh in its body's frame.

    Attributes:
        vertices: (V, 3) float32 [m].
        triangles: (F, 3) uint32, counter-clockwise seen from outside.
        normals: (V, 3) float32, unit.
        uv: (V, 2) float32 texture coordinates.
    """

    vertices: NDArray[np.float32]
    triangles: NDArray[np.uint32]
    normals: NDArray[np.float32]
    uv: NDArray[np.float32]

    def content_hash(self) -> str:
        """Sha256 over shapes and bytes of the four arrays."""
        digest = hashlib.sha256()
        for array in (self.vertices, self.triangles, self.normals, self.uv):
            digest.update(str((array.dtype.str, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


Meshes = Mapping[str, MeshData]


# --- shapes (all centred on their own frame) ----------------------------------------------------


class Sphere(Card):
    """A ball; ``radius`` [m]."""

    kind: Literal["sphere"] = "sphere"
    radius: float = Field(gt=0)


class Box(Card):
    """A box with ``half_extents`` [m]; ``bevel`` [m] rounds the edges of the picture only."""

    kind: Literal["box"] = "box"
    half_extents: Vec3
    bevel: float = Field(default=0.0, ge=0)


class Cylinder(Card):
    """A cylinder about z; ``radius`` and full ``height`` [m]."""

    kind: Literal["cylinder"] = "cylinder"
    radius: float = Field(gt=0)
    height: float = Field(gt=0)


class Capsule(Card):
    """A cylinder about z with half balls as ends; ``radius`` and ``height`` over all [m]."""

    kind: Literal["capsule"] = "capsule"
    radius: float = Field(gt=0)
    height: float = Field(gt=0)

    @model_validator(mode="after")
    def _check(self) -> Capsule:
        if self.height <= 2 * self.radius:
            raise ValueError(
                f"a capsule {self.height} m high has no room for two half balls of radius "
                f"{self.radius} m: make it higher, or take a sphere"
            )
        return self


class Deform(Card):
    """How a mesh follows the modal state of its world.

    Attributes:
        kind: row of `wmeval.sim.render.deform.DEFORMERS`.
        modal: name of the `Modal` state that it follows.
        profile: (radius, z) [m] of the vessel's cavity in the body's frame.
    """

    kind: str
    modal: str
    profile: tuple[tuple[float, float], ...] = ()


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Mesh(Card):
    """A mesh by content hash; its convex hull collides unless ``convex`` is false (static only).

    With ``deform`` the vertices follow modal state; the stored mesh gives the triangles. Else
    ``coarser`` may list stand-ins that pictures use from afar, coarse to fine: content hash and
    largest departure [m].
    """

    kind: Literal["mesh"] = "mesh"
    sha256: Sha256
    convex: bool = True
    deform: Deform | None = None
    coarser: tuple[tuple[Sha256, Annotated[float, Field(ge=0)]], ...] = Field(
        default=(), max_length=3
    )

    @model_validator(mode="after")
    def _check(self) -> Mesh:
        if self.deform is not None and self.coarser:
            raise ValueError("a mesh that deforms has no stand-ins: leave out coarser")
        return self


Shape = Annotated[Sphere | Box | Cylinder | Capsule | Mesh, Field(discriminator="kind")]


# --- look ---------------------------------------------------------------------------------------


class Texture(Card):
    """A texture by the name of its builder in `wmeval.assets.textures`, baked on first use.

    Attributes:
        builder: row of the table of builders, or "image:" and the content hash of a picture that
            travels beside the meshes (`wmeval.assets.pictures`).
        colors: colours the pattern is made of, linear RGB in [0, 1].
        repeat: pattern repeats across the unit square of texture coordinates.
        seed: seed of the pattern's noise.
    """

    builder: str
    colors: tuple[Color, ...] = Field(min_length=1)
    repeat: float = Field(default=1.0, gt=0)
    seed: int = Field(default=0, ge=0)


class Material(Card):
    """Look of a surface.

    Attributes:
        name: key that visuals refer to.
        texture: base colour; every surface has one, since flow estimators fail on flat colour.
        roughness: 0 mirror-smooth to 1 chalk.
        specular: dielectric highlight strength in [0, 1].
        mirror: fraction of the scene's reflection shown (chrome: close to 1).
        opacity: below 1 it is glass: shown in ``glass_ids``, seen through by the other labels.
        labelled_solid: clear in colour pictures, as the `Vessel` that holds it shows it; solid in
            ids, depth, normals and shadows (a liquid).
        ior: refractive index of glass.
        uv_m: metres of surface per unit of texture coordinates; None uses the mesh's own 0..1.
        two_sided: both faces of a mesh's triangles are seen and cast shadows (leaves, cloth,
            paper); else a triangle is nothing from behind, so that other meshes must be closed.
    """

    name: str
    texture: Texture
    roughness: float = Field(default=0.6, ge=0, le=1)
    specular: float = Field(default=0.3, ge=0, le=1)
    mirror: float = Field(default=0.0, ge=0, le=1)
    opacity: float = Field(default=1.0, gt=0, le=1)
    labelled_solid: bool = False
    ior: float = Field(default=1.5, ge=1)
    uv_m: float | None = Field(default=None, gt=0)
    two_sided: bool = False


class Vessel(Card):
    """What a glass body of revolution holds: seen refracted through the glass in colour pictures.

    Attributes:
        outer: (radius, z) [m] of the glass's outer wall in the visual's frame.
        liquid: name of the liquid's material; its ``ior`` bends, its texture's first colour tints.
        surface: the liquid's surface; its ``profile`` is the glass's inner wall.
    """

    outer: tuple[tuple[float, float], ...] = Field(min_length=4)
    liquid: str
    surface: Deform


class Visual(Card):
    """A piece of a body's look: shape, material, pose in the body's frame."""

    shape: Shape
    material: str
    position: Vec3 = (0.0, 0.0, 0.0)
    quaternion_wxyz: Quat = IDENTITY
    vessel: Vessel | None = None


class Collision(Card):
    """A piece of a body's collision geometry, with its pose in the body's frame."""

    shape: Shape
    position: Vec3 = (0.0, 0.0, 0.0)
    quaternion_wxyz: Quat = IDENTITY


# --- content ------------------------------------------------------------------------------------


class Body(Card):
    """A rigid body.

    Attributes:
        name: unique in the scene.
        role: what the body is to the task ("player", "domino", ...); metrics select by it.
        motion: static | kinematic | dynamic at t = 0. A kinematic body with a mass may be released.
        instance: id in label layers, 1..65535, unique; 0 keeps the body out of the labels.
        mass: [kg].
        inertia: principal moments [kg m^2] about the centre of mass, along the axes of the body's
            frame, whose origin is the centre of mass then; None: both follow from the collision
            shapes at uniform density.
        friction: the pair value is the PRODUCT of the two bodies' values.
        restitution: the pair value is the PRODUCT of the two bodies' values.
        rolling_friction: [m], lever arm of rolling resistance.
        linear_damping, angular_damping: fraction of velocity lost per second.
        upright: contacts and torques do not turn it (a walking figure); only a driver does.
        position, quaternion_wxyz, linear_velocity, angular_velocity: at t = 0, world frame, SI.
        active: false leaves the slot empty at t = 0.
    """

    name: str = Field(min_length=1)
    role: str
    motion: Literal["static", "kinematic", "dynamic"]
    instance: int = Field(ge=0, le=65535)
    collision: tuple[Collision, ...] = ()
    visuals: tuple[Visual, ...] = ()
    mass: float = Field(default=0.0, ge=0)
    inertia: tuple[float, float, float] | None = None
    friction: float = Field(default=1.0, ge=0)
    restitution: float = Field(default=0.0, ge=0, le=1)
    rolling_friction: float = Field(default=0.0, ge=0)
    linear_damping: float = Field(default=0.0, ge=0, le=1)
    angular_damping: float = Field(default=0.0, ge=0, le=1)
    upright: bool = False
    position: Vec3 = (0.0, 0.0, 0.0)
    quaternion_wxyz: Quat = IDENTITY
    linear_velocity: Vec3 = (0.0, 0.0, 0.0)
    angular_velocity: Vec3 = (0.0, 0.0, 0.0)
    active: bool = True

    @model_validator(mode="after")
    def _check(self) -> Body:
        if self.motion == "dynamic" and self.mass <= 0:
            raise ValueError(f"body {self.name!r} is dynamic: give it a mass > 0 kg")
        norm = sum(c * c for c in self.quaternion_wxyz)
        if abs(norm - 1) > 1e-6:
            raise ValueError(f"body {self.name!r}: quaternion_wxyz has |q|^2 = {norm:.6g}, not 1")
        if self.inertia is not None:
            self._check_inertia(*self.inertia)
        return self

    def _check_inertia(self, *moments: float) -> None:
        """Can a mass have these principal moments?"""
        if self.mass <= 0:
            raise ValueError(
                f"body {self.name!r} has an inertia and no mass: give it a mass > 0 kg"
            )
        small, middle, great = sorted(moments)
        # A flat body's greatest moment is the sum of the other two, up to rounding.
        if small <= 0 or great > (small + middle) * (1 + 1e-9):
            raise ValueError(
                f"body {self.name!r}: no body has principal moments of inertia {moments} kg m^2: "
                "give three > 0, none of them above the sum of the other two"
            )


class Joint(Card):
    """What holds two bodies together, or one body to the world, where both are at t = 0.

    Attributes:
        name: unique in the scene.
        kind: "hinge" turns about an axis, "ball" about a point, "fixed" not at all.
        body: name of a dynamic body.
        other: name of the body that it is held to; empty: the world.
        pivot: [m], world frame, at t = 0.
        axis: of a hinge, in the world frame at t = 0; its length does not matter.
        armature: inertia [kg m^2] about a hinge's axis beside the body's own (a rotor).
        damping: torque against a hinge's turning [N m s/rad].
        collide: the two bodies still touch each other.
    """

    name: str = Field(min_length=1)
    kind: Literal["hinge", "ball", "fixed"]
    body: str
    other: str = ""
    pivot: Vec3
    axis: Vec3 = (0.0, 0.0, 1.0)
    armature: float = Field(default=0.0, ge=0)
    damping: float = Field(default=0.0, ge=0)
    collide: bool = False

    @model_validator(mode="after")
    def _check(self) -> Joint:
        if self.body == self.other:
            raise ValueError(f"joint {self.name!r} holds {self.body!r} to itself")
        if self.kind == "hinge" and sum(c * c for c in self.axis) < 1e-18:
            raise ValueError(f"joint {self.name!r}: the hinge's axis has no length")
        if self.kind != "hinge" and (self.armature or self.damping):
            raise ValueError(f"joint {self.name!r}: only a hinge has armature and damping")
        return self


# --- what bends ---------------------------------------------------------------------------------


class Sheet(Card):
    """A flat grid in x and y about its own frame.

    Vertex ``j (nx + 1) + i`` is at ``((i / nx - 1/2) size_x, (j / ny - 1/2) size_y, 0)``; every
    cell is cut along the diagonal from its least to its greatest corner.
    """

    kind: Literal["sheet"] = "sheet"
    size: tuple[float, float]
    cells: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]


class Block(Card):
    """A box of tetrahedra about its own frame.

    Vertex ``(k (ny + 1) + j) (nx + 1) + i``, as in `Sheet`; every cell is five tetrahedra, mirrored
    from cell to cell.
    """

    kind: Literal["block"] = "block"
    size: Vec3
    cells: tuple[
        Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]
    ]


class Tetrahedra(Card):
    """Any solid of tetrahedra: ``vertices`` [m] and, for each, four of them, positive in volume."""

    kind: Literal["tetrahedra"] = "tetrahedra"
    vertices: tuple[Vec3, ...] = Field(min_length=4)
    elements: tuple[tuple[int, int, int, int], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Tetrahedra:
        last = len(self.vertices) - 1
        if any(not 0 <= v <= last for element in self.elements for v in element):
            raise ValueError(f"an element names a vertex beyond 0..{last}")
        return self


class Pin(Card):
    """Vertices that follow a body rigidly from where they are at t = 0.

    A clamp is a kinematic body that a driver moves, with or without collision geometry; what hangs
    on a dynamic body pulls it.

    Attributes:
        vertices: numbers of vertices.
        body: name; empty: they stay where they are.
    """

    vertices: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    body: str = ""


class _Deformable(Card):
    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")
    role: str = "deformable"
    instance: int = Field(default=0, ge=0, le=65535)
    material: str = ""
    pins: tuple[Pin, ...] = ()
    friction: float = Field(default=0.0, ge=0)
    damping: float = Field(default=0.0, ge=0)
    position: Vec3 = (0.0, 0.0, 0.0)
    quaternion_wxyz: Quat = IDENTITY
    linear_velocity: Vec3 = (0.0, 0.0, 0.0)


class Cloth(_Deformable):
    """A thin sheet, stress-free and flat in its own frame.

    Attributes:
        name: unique among bodies and deformables; key of its vertices in the state.
        role, instance: as a `Body`'s.
        material: name of its look; empty: pictures do not show it.
        surface: `Sheet`, or a `Mesh` by content hash (its triangles as they are).
        areal_density: [kg/m^2].
        stretch: force per width and strain of a strip that is free to narrow [N/m].
        shear: shear force per width and angle [N/m].
        bending: moment per width and curvature [N m].
        thickness: [m]; half of it is its contact radius.
        self_contact: it touches itself.
        pins: what holds it.
        friction: the pair value is the PRODUCT, as between bodies.
        damping: stiffness-proportional, times the stiffnesses above [s].
        position, quaternion_wxyz: of its frame at t = 0.
        linear_velocity: of all its vertices at t = 0 [m/s].
    """

    kind: Literal["cloth"] = "cloth"
    surface: Annotated[Sheet | Mesh, Field(discriminator="kind")]
    areal_density: float = Field(gt=0)
    stretch: float = Field(gt=0)
    shear: float = Field(gt=0)
    bending: float = Field(ge=0)
    thickness: float = Field(default=1e-3, gt=0)
    self_contact: bool = False


class Soft(_Deformable):
    """An elastic solid, stress-free at t = 0; other fields as `Cloth`'s.

    Attributes:
        volume: `Block` or `Tetrahedra`.
        density: [kg/m^3].
        youngs_modulus: [Pa], of small strains.
        poisson_ratio: in (-1, 1/2).
    """

    kind: Literal["soft"] = "soft"
    volume: Annotated[Block | Tetrahedra, Field(discriminator="kind")]
    density: float = Field(gt=0)
    youngs_modulus: float = Field(gt=0)
    poisson_ratio: float = Field(gt=-1, lt=0.5)


class Rope(_Deformable):
    """A slender rod through ``points``, its vertices, straight or not: there it has no stress.

    Attributes:
        points: [m], in its own frame.
        radius: [m].
        density: [kg/m^3].
        stretch: force per strain, E A [N].
        bending: moment per curvature, E I [N m^2].
    """

    kind: Literal["rope"] = "rope"
    points: tuple[Vec3, ...] = Field(min_length=2)
    radius: float = Field(gt=0)
    density: float = Field(gt=0)
    stretch: float = Field(gt=0)
    bending: float = Field(default=0.0, ge=0)


Deformable = Annotated[Cloth | Soft | Rope, Field(discriminator="kind")]


class Focus(Card):
    """A ball of the world where something happens that pictures should show finely.

    Attributes:
        center: world frame [m].
        radius: [m].
    """

    center: Vec3
    radius: float = Field(gt=0)


class Sun(Card):
    """A distant light.

    Attributes:
        direction: unit vector along which the light travels (downwards: z < 0), world frame.
        color: linear RGB.
        strength: radiance relative to the sky.
        softness: width of the shadow's edge as an angle [rad] (the real sun: 0.0093).
        reach: pictures show sharp shadows within this distance of the origin, along x and along y
            [m], and none far beyond it; None: of all that is not vast.
        focus: shadows that fall in it are drawn from a finer map of their own; elsewhere they stay
            as they are.
    """

    direction: Vec3
    color: Color = (1.0, 0.96, 0.9)
    strength: float = Field(default=2.5, ge=0)
    softness: float = Field(default=0.02, ge=0)
    reach: float | None = Field(default=None, gt=0)
    focus: Focus | None = None


class Sky(Card):
    """A graded sky, also the ambient light: linear RGB at zenith, horizon and below the ground.

    ``panorama``: what stands around at infinity, by its builder in `wmeval.assets.panorama`;
    ``repeat`` of it fit around the horizon.
    """

    zenith: Color = (0.16, 0.34, 0.72)
    horizon: Color = (0.62, 0.74, 0.88)
    ground: Color = (0.22, 0.21, 0.2)
    strength: float = Field(default=1.0, ge=0)
    clouds: float = Field(default=0.35, ge=0, le=1)
    panorama: Texture | None = None


class Camera(Card):
    """A camera at t = 0; a driver may move it.

    Attributes:
        name: key of ``options={"view": name}``.
        position, target: eye and looked-at point [m].
        fov_y_deg: vertical field of view [deg].
        near, far: clip planes [m].
        hides: names of bodies that this camera does not see: what an eye belongs to. They cast
            shadows and show in mirrors as ever; no other layer has them.
    """

    name: str
    position: Vec3
    target: Vec3
    fov_y_deg: float = Field(default=45.0, gt=0, lt=180)
    near: float = Field(default=0.1, gt=0)
    far: float = Field(default=200.0, gt=0)
    hides: tuple[str, ...] = ()


class Modal(Card):
    """Named extra state that a driver keeps beside the bodies: slosh modes, the phase of a gait.

    Attributes:
        name: key in ``StateLog.modal`` and in files ("modal/<name>").
        size: how many numbers; they are 0 until a driver sets them.
        unit: SI unit, "1" for none.
        doc: one line: what the numbers are, in order.
    """

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")
    size: int = Field(ge=1, le=4096)
    unit: str = "1"
    doc: str = Field(min_length=1)


class Scene(Card):
    """Bodies, light and cameras of one world at t = 0; ``modal`` declares its drivers' state.

    Scenes without joints, deformables and stated inertia have the JSON, and the hash, that they had
    before there were any.
    """

    name: str
    gravity: Vec3 = (0.0, 0.0, -9.81)
    bodies: tuple[Body, ...]
    materials: tuple[Material, ...]
    cameras: tuple[Camera, ...] = Field(min_length=1)
    sun: Sun
    sky: Sky = Sky()
    modal: tuple[Modal, ...] = ()
    joints: tuple[Joint, ...] = ()
    deformables: tuple[Deformable, ...] = ()

    @model_serializer(mode="wrap")
    def _lean(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for key in ("joints", "deformables"):
            if not data.get(key):
                data.pop(key, None)
        for body in data.get("bodies", ()):
            if body.get("inertia", 0) is None:
                del body["inertia"]
        return data

    @model_validator(mode="after")
    def _check(self) -> Scene:
        placed = (*self.bodies, *self.deformables)
        for what, keys in (
            ("body name", [b.name for b in placed]),
            ("instance", [b.instance for b in placed if b.instance]),
            ("joint", [j.name for j in self.joints]),
            ("material", [m.name for m in self.materials]),
            ("camera", [c.name for c in self.cameras]),
            ("modal state", [m.name for m in self.modal]),
        ):
            twice = [k for k, n in Counter(map(str, keys)).items() if n > 1]
            if twice:
                raise ValueError(f"scene {self.name!r}: {what} {twice[0]!r} twice")
        names = {b.name for b in self.bodies}
        for camera in self.cameras:
            for name in camera.hides:
                if name not in names:
                    raise ValueError(f"camera {camera.name!r} hides {name!r}, which is no body")
        known = {m.name for m in self.materials}
        for body in self.bodies:
            for visual in body.visuals:
                if visual.material not in known:
                    raise ValueError(f"body {body.name!r}: no material {visual.material!r}")
        self._check_held(known)
        return self

    def _check_held(self, materials: set[str]) -> None:
        """Do joints and deformables name what is there?"""
        motion = {b.name: b.motion for b in self.bodies}
        for joint in self.joints:
            for name in (joint.body, joint.other):
                if name and name not in motion:
                    raise ValueError(f"joint {joint.name!r} holds {name!r}, which is no body")
            if motion[joint.body] != "dynamic":
                raise ValueError(
                    f"joint {joint.name!r}: its body {joint.body!r} is {motion[joint.body]}; name "
                    "the dynamic one first"
                )
        for item in self.deformables:
            if item.material and item.material not in materials:
                raise ValueError(f"deformable {item.name!r}: no material {item.material!r}")
            held = Counter(v for pin in item.pins for v in pin.vertices)
            twice = [v for v, n in held.items() if n > 1]
            if twice:
                raise ValueError(f"deformable {item.name!r}: vertex {twice[0]} is pinned twice")
            for pin in item.pins:
                if pin.body and pin.body not in motion:
                    raise ValueError(
                        f"deformable {item.name!r} is pinned to {pin.body!r}, which is no body"
                    )

    def index(self, name: str) -> int:
        """Position of a body in ``bodies``.

        Raises:
            KeyError: no such body.
        """
        for i, body in enumerate(self.bodies):
            if body.name == name:
                return i
        raise KeyError(f"scene {self.name!r} has no body {name!r}")

    def indices(self, role: str) -> tuple[int, ...]:
        """Positions of all bodies with a role."""
        return tuple(i for i, body in enumerate(self.bodies) if body.role == role)

    def with_bodies(self, **changes: Mapping[str, object]) -> Scene:
        """A copy in which named bodies have fields replaced (validated anew)."""
        for name in changes:
            self.index(name)
        bodies = tuple(
            Body.model_validate({**body.model_dump(), **changes.get(body.name, {})})
            for body in self.bodies
        )
        return self.model_copy(update={"bodies": bodies})

    def content_hash(self) -> str:
        """Sha256 of the canonical JSON."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
