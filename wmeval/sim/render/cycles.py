"""Pictures by path tracing: Blender's Cycles, through `bpy` in a worker.

The scene is the raster renderer's: the same triangles at their finest, the same baked textures and
texture coordinates, sun, sky and clouds; balls are 128 by 64 facets. Cycles' linear light goes
through the raster's own film curve and haze (not through one of Blender's view transforms), so that
the two can be compared and put side by side.

Labels come from a render of their own: the opaque pieces, one sample at each pixel's centre, so
that ids are exact, depth is planar and none is smoothed over an edge. Ids of glass come from a
third render. Flow and other derived labels follow from them as everywhere (`labels`).

What differs from the raster renderer: light bounces, and what stands around takes it away; glass
bends what is seen through it (labels do not), but throws no shadow here either; chrome shows
chrome; liquid in a vessel is a clear body of its own. Meshes must be closed, or ``two_sided``:
Cycles shows their backs. It draws no ``shadow_ids`` and ``shadow_masks``: the raster does.

The same state, version, device kind and preset give the same bits.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.meshes import merge, revolve, sphere
from wmeval.assets.textures import bake
from wmeval.conventions import intrinsics, pixel_grid, unproject
from wmeval.errors import UserError
from wmeval.jobs.worker import Buffers
from wmeval.layers import LAYERS
from wmeval.scene import Material, MeshData, Meshes, Scene, Vessel
from wmeval.sim.blender_worker import BlenderWorker, blender_python, bpy_version
from wmeval.sim.protocol import RenderState
from wmeval.sim.render.pieces import GLASS, Pieces, compile_pieces, mean_color
from wmeval.sim.render.raster import EXPOSURE, HAZE, _daylight, _twilight
from wmeval.sim.render.skylight import lit_sky, seen_sky
from wmeval.sim.render.vessel import PATH_M

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]

DRAWN = ("rgb", "depth", "ids", "glass_ids", "normals")
"""Layers of this renderer."""

BALL_SEGMENTS = 128
_MAX_PIECES = 32_767
"""Blender's object indices end there."""
_SERVE = Path(__file__).with_name("cycles_serve.py")
_POLISHED = 0.05
"""Roughness up to which chrome and glass count as polished."""
VESSEL_BOUNCES = 16
"""Least transmission bounces of a scene with a vessel: two walls and the liquid, there and back."""
_OVERLAP = 3e-4
"""How far [m] a liquid reaches into its vessel's wall: no film of air is between them."""


@dataclass(frozen=True)
class Preset:
    """How well Cycles renders (RigidBench, Table 7, is "paper").

    Attributes:
        name: what options and metadata call it.
        samples: most per pixel.
        adaptive_threshold: noise at which a pixel is done.
        bounces: of light, at most; of each kind: ``diffuse_bounces``, ``glossy_bounces``,
            ``transmission_bounces``.
        denoise: by OptiX where that renders, else by Open Image Denoise.
    """

    name: str
    samples: int
    adaptive_threshold: float = 0.05
    bounces: int = 6
    diffuse_bounces: int = 3
    glossy_bounces: int = 3
    transmission_bounces: int = 3
    denoise: bool = True


PRESETS: dict[str, Preset] = {
    row.name: row for row in (Preset("draft", 8), Preset("preview", 16), Preset("paper", 32))
}


class CyclesRenderer:
    """Pictures of one scene.

    Args:
        scene: what to draw.
        meshes: content hash to mesh.
        preset: row of `PRESETS`, or a `Preset` of your own.
        device: "cpu", "gpu" (an error where there is none) or "auto".
        python: interpreter that has `bpy`, or environment (`wmeval install`); "" for the one that
            is found.
        threads: of the CPU; 0 for all.
        timeout: of one picture [s].
        texture_size: texels along a side of each texture.

    Raises:
        UserError: no `bpy`, an unknown preset, device, texture or mesh.
    """

    name = "cycles"

    def __init__(
        self,
        scene: Scene,
        meshes: Meshes,
        *,
        preset: str | Preset = "preview",
        device: str = "auto",
        python: str = "",
        threads: int = 0,
        timeout: float = 3600.0,
        texture_size: int = 512,
    ) -> None:
        if isinstance(preset, str):
            if preset not in PRESETS:
                raise UserError(f"no Cycles preset {preset!r}: choose from {', '.join(PRESETS)}")
            preset = PRESETS[preset]
        if device not in ("auto", "cpu", "gpu"):
            raise UserError(f"device = {device!r}: choose cpu, gpu or auto")
        if scene.deformables:
            raise UserError(
                f"scene {scene.name!r} has cloth, ropes or solids ({scene.deformables[0].name!r}): "
                "the cycles renderer draws none: take raster"
            )
        self.scene, self.preset, self.device = scene, preset, device
        self._python, self._threads, self._timeout = blender_python(python), threads, timeout
        self.version = f"1 (Blender {bpy_version(python) or 'of unknown version'})"
        self._texture_size = texture_size
        self._pieces = compile_pieces(scene, meshes)
        if self._pieces.vessels:
            self.preset = preset = _through_vessels(preset)
        if len(self._pieces) > _MAX_PIECES:
            raise UserError(
                f"scene {scene.name!r} has {len(self._pieces)} visuals: cycles tells {_MAX_PIECES} "
                "apart"
            )
        self._instance = np.concatenate([[0], self._pieces.instance]).astype(np.uint16)
        floor = self._pieces.floor
        self._reach = max(60.0, float(self._pieces.half[floor, :2].min()) if floor >= 0 else 0.0)
        layer = int(self._pieces.record[floor, 12]) if floor >= 0 else -1
        self._floor_color = (
            mean_color(self._pieces.textures[layer])
            if floor >= 0
            else np.array(scene.sky.ground, np.float64)
        )
        self._worker: BlenderWorker | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._closed = False
        self._light_key: bytes = b""
        self._modal_key: dict[int, bytes] = {}
        self.about: dict[str, Any] = {}
        """Blender's version, device, denoiser and the preset in force, once it has started."""

    # --- the worker -------------------------------------------------------------------------------

    def _started(self) -> BlenderWorker:
        if self._worker is not None and self._worker.lost:
            self._end()  # The next picture has a Blender of its own.
        if self._worker is None:
            self._light_key, self._modal_key = b"", {}
            self._folder = tempfile.TemporaryDirectory(prefix="wmeval-cycles-")
            worker = BlenderWorker(
                _SERVE, "renderer cycles", python=self._python, timeout=self._timeout
            )
            header, arrays, self._mesh_of = describe(self.scene, self._pieces, self._texture_size)
            header |= {
                "preset": asdict(self.preset),
                "device": self.device,
                "threads": self._threads,
                "folder": self._folder.name,
            }
            told, _ = worker.call("build", header, arrays)
            self.about = {**told, "preset": asdict(self.preset)}
            self._worker = worker
        return self._worker

    def close(self) -> None:
        """End Blender; idempotent."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # --- drawing ----------------------------------------------------------------------------------

    def draw(
        self, state: RenderState, width: int, height: int, layers: tuple[str, ...]
    ) -> dict[str, NDArray[Any]]:
        """Layers of one instant, rows top-down; see `wmeval.layers.LAYERS` for each.

        Args:
            state: poses of the scene's bodies, camera and sun.
            width: of the picture [px], 1..8192.
            height: of the picture [px], 1..8192.
            layers: of `DRAWN`.

        Returns:
            Fresh arrays by layer name, in the order asked for.

        Raises:
            UserError: unknown layer, impossible size, poses that do not fit the scene or are not
                finite, a device that is not there.
            WorkerError: Blender crashed or took longer than the time-out.
        """
        self._check(state, width, height, layers)
        worker = self._started()
        rotation, centre = self._pieces.world(state)
        drawn = state.active[self._pieces.body]
        poses = np.broadcast_to(np.eye(4), (len(drawn), 4, 4)).copy()
        poses[drawn, :3, :3], poses[drawn, :3, 3] = rotation[drawn], centre[drawn]
        glass = "glass_ids" in layers and bool((drawn & (self._pieces.kind == GLASS)).any())
        # The haze of colours needs distances, too.
        ask = [
            *(["color"] if "rgb" in layers else []),
            *(["labels"] if layers else []),
            *(["glass"] if glass else []),
        ]
        header: dict[str, Any] = {
            "ask": ask, "width": width, "height": height,
            "fov_y": state.fov_y, "near": state.near, "far": state.far,
        }  # fmt: skip
        arrays: Buffers = {
            "poses": poses, "drawn": drawn,
            "seen": drawn if state.hidden is None else drawn & ~state.hidden[self._pieces.body],
            "T_world_camera": np.asarray(state.T_world_camera, np.float64),
            "open": self._around(state, rotation, centre),
        }  # fmt: skip
        arrays |= self._deformed(state)
        if "rgb" in layers:
            key, light, pictures = self._light(state)
            if light:
                header["sun"] = light
                arrays |= pictures
        else:
            key = self._light_key
        _, answer = worker.call("draw", header, arrays)
        self._light_key = key
        out = self._finished(state, answer, layers)
        return {name: out[name] for name in dict.fromkeys(layers)}

    def _check(self, state: RenderState, width: int, height: int, layers: tuple[str, ...]) -> None:
        if self._closed:
            raise UserError("this renderer is closed: make a new one")
        for name in layers:
            if name not in DRAWN:
                where = " (the raster renderer draws it)" if name.startswith("shadow_") else ""
                where = where or (" (labels.flow derives it)" if name in LAYERS else "")
                raise UserError(
                    f"the cycles renderer draws {', '.join(DRAWN)}; got {name!r}{where}"
                )
        if not (1 <= width <= 8192 and 1 <= height <= 8192):
            raise UserError(f"picture size {width}x{height}: each side must be 1..8192 px")
        bodies = len(self.scene.bodies)
        if state.position.shape != (bodies, 3) or state.quaternion_wxyz.shape != (bodies, 4):
            raise UserError(
                f"scene {self.scene.name!r} has {bodies} bodies; the state has positions "
                f"{state.position.shape} and quaternions {state.quaternion_wxyz.shape}"
            )
        on = state.active
        if not (
            np.isfinite(state.position[on]).all()
            and np.isfinite(state.quaternion_wxyz[on]).all()
            and np.isfinite(state.T_world_camera).all()
        ):
            raise UserError("the state to draw holds NaN or infinite poses")

    def _around(self, state: RenderState, rotation: F8, centre: F8) -> NDArray[np.bool_]:
        """Pieces (P,) that the camera may be inside of: their inner sides are not to be seen.

        Cycles shows the backs of surfaces, the raster does not; an eye in a head looks out of it.
        """
        away = np.asarray(state.T_world_camera, np.float64)[:3, 3] - centre
        inside = np.abs(np.einsum("pji,pj->pi", rotation, away)) <= self._pieces.half + state.near
        one_sided = (self._pieces.record[:, 23] == 0) & (self._pieces.kind != GLASS)
        return np.asarray(inside.all(axis=1) & one_sided)

    def _deformed(self, state: RenderState) -> Buffers:
        """Vertices and normals of the meshes whose modal state has changed."""
        out: Buffers = {}
        for found in self._pieces.deforms:
            values = state.modal.get(found.modal)
            if values is None or len(values) != found.deformer.size:
                raise UserError(
                    f"scene {self.scene.name!r}: a mesh follows the modal state {found.modal!r} of "
                    f"{found.deformer.size} numbers, which the state to draw does not hold"
                )
            key = np.asarray(values, np.float64).tobytes()
            if self._modal_key.get(found.piece) != key:
                self._modal_key[found.piece] = key
                mesh = found.deformer.mesh(np.asarray(values, np.float64))
                number = self._mesh_of[found.piece]
                out[f"deform/{number}/vertices"] = mesh.vertices
                out[f"deform/{number}/normals"] = mesh.normals
        return out

    def _light(self, state: RenderState) -> tuple[bytes, dict[str, Any], Buffers]:
        """Sun and sky, if they are not those of the picture before."""
        sky = np.asarray(state.sky, np.float64)
        color = np.asarray(state.sun_color, np.float64)
        to_sun = -np.asarray(state.sun_direction, np.float64)
        to_sun /= np.linalg.norm(to_sun)
        key = b"".join(a.tobytes() for a in (sky, color, to_sun))
        if key == self._light_key:
            return key, {}, {}
        # As the raster's frame has them.
        elevation = float(to_sun[2])
        light, glow = _daylight(elevation) * color, _twilight(elevation) * color
        up = max(elevation, 0.0)
        zenith, horizon, ground = sky
        bounce = self._floor_color * (0.5 * up * light + 0.6 * (0.5 * zenith + 0.5 * horizon))
        seen = seen_sky(sky, ground * (0.4 + 0.6 * up), self.scene.sky, to_sun, glow, light)
        sun = {
            "light": light.tolist(),
            "to_sun": to_sun.tolist(),
            "angle": self.scene.sun.softness,
        }
        return key, sun, {"seen_sky": seen, "lit_sky": lit_sky(sky, bounce)}

    def _finished(
        self, state: RenderState, answer: Buffers, layers: tuple[str, ...]
    ) -> dict[str, NDArray[Any]]:
        out: dict[str, NDArray[Any]] = {}
        piece, z = answer["labels/piece"], answer["labels/depth"]
        depth = np.where(piece > 0, z, np.float32(np.inf)).astype(np.float32)
        if "rgb" in layers:
            out["rgb"] = develop(self._hazed(answer["color"], depth, state))
        if "depth" in layers:
            out["depth"] = depth
        if "ids" in layers:
            out["ids"] = self._instance[piece]
        if "normals" in layers:
            normals = np.where(piece[..., None] > 0, answer["labels/normals"], np.float32(0))
            length = np.linalg.norm(normals, axis=-1, keepdims=True)
            out["normals"] = (normals / np.where(length > 0, length, 1)).astype(np.float32)
        if "glass_ids" in layers:
            out["glass_ids"] = np.zeros(piece.shape, np.uint16)
            if "glass/piece" in answer:
                shown, near = answer["glass/piece"], answer["glass/depth"]
                out["glass_ids"] = self._instance[np.where(near < depth, shown, 0)]
        return out

    def _hazed(self, color: F4, depth: F4, state: RenderState) -> F4:
        """Distance along the ground melts into the horizon, as in ``light.glsl``."""
        height, width = depth.shape
        K = intrinsics(state.fov_y, width, height)
        there = np.isfinite(depth)
        points = unproject(pixel_grid(width, height)[there], depth[there], K, state.T_world_camera)
        along = points[:, :2] - state.T_world_camera[:2, 3]
        x = (along**2).sum(axis=1) * (HAZE / self._reach) ** 2
        share = ((x / (1 + x)) ** 2)[:, None]
        out = color.copy()
        out[there] += ((state.sky[1] * 1.6 - out[there]) * share).astype(np.float32)
        return out


def develop(linear: F4) -> NDArray[np.uint8]:
    """Linear light (H, W, 3) to what is shown: the curve of ``film.glsl``."""
    x = np.maximum(np.nan_to_num(linear, posinf=1e6), 0) * np.float32(EXPOSURE)
    x = np.clip(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14), 0, 1)
    return np.asarray(np.rint(np.sqrt(x) * 255), np.uint8)


# --- a scene in the worker's terms ----------------------------------------------------------------


def describe(
    scene: Scene, pieces: Pieces, texture_size: int
) -> tuple[dict[str, Any], Buffers, list[int]]:
    """What the worker builds from: header, arrays, and the mesh number of each piece."""
    looks = {m.name: m for m in scene.materials}
    names = [v.material for body in scene.bodies for v in body.visuals]
    numbers = {name: k for k, name in enumerate(dict.fromkeys(names))}
    arrays: Buffers = {
        "textures": np.stack([bake(t, texture_size) for t in pieces.textures])
        if pieces.textures
        else np.zeros((0, 1, 1, 3), np.uint8)
    }
    layer_of = {name: int(pieces.record[k, 12]) for k, name in enumerate(names)}
    found: dict[tuple[float, ...], int] = {}
    mesh_of: list[int] = []
    vessels = {held.piece: held.vessel for held in pieces.vessels}
    for k in range(len(pieces)):
        _, u, v, _ = pieces.record[k, 12:16].tolist()
        ball = bool(pieces.ball[k])
        size = float(pieces.radius[k]) if ball else float(pieces.slot[k])
        key = (size, float(ball), u, v, float(k) if k in vessels else -1.0)
        if key not in found:
            number = found[key] = len(found)
            if k in vessels:
                mesh = _vessel(vessels[k])
            else:
                mesh = _ball(size) if ball else _stored(pieces, k)
            arrays[f"mesh/{number}/vertices"] = mesh.vertices
            arrays[f"mesh/{number}/triangles"] = mesh.triangles
            arrays[f"mesh/{number}/normals"] = mesh.normals
            arrays[f"mesh/{number}/uv"] = mesh.uv * np.array([u, v], np.float32)
        mesh_of.append(found[key])
    holding = {names[k] for k in vessels}
    header = {
        "meshes": len(found),
        "materials": [
            _look(looks[name], layer_of[name], clear=name in holding) for name in numbers
        ],
        "pieces": [
            {
                "mesh": mesh_of[k],
                "material": numbers[name],
                "glass": int(pieces.kind[k]) == GLASS,
            }
            for k, name in enumerate(names)
        ],
    }
    return header, arrays, mesh_of


def _look(look: Material, layer: int, *, clear: bool = False) -> dict[str, Any]:
    """A material in the worker's terms; ``clear``: all light goes through that is not reflected."""
    # What is as good as polished reflects and refracts without scatter: no noise, and the sky that
    # is seen, not the one that lights.
    polished = look.roughness <= _POLISHED and (look.mirror > 0 or look.opacity < 1)
    polished |= look.labelled_solid
    tint = np.array(look.texture.colors[0], np.float64)
    return {
        "name": look.name,
        "texture": layer,
        "roughness": 0.0 if polished else look.roughness,
        "specular": look.specular,
        "mirror": look.mirror,
        "transmission": 1.0 if look.labelled_solid or clear else 1.0 - look.opacity,
        "ior": look.ior,
        "clear": clear or look.labelled_solid,
        # A liquid takes light on the way through it, not where it enters.
        "absorbs": (-np.log(np.clip(tint, 1e-3, 0.999)) / PATH_M).tolist()
        if look.labelled_solid
        else None,
        "shadow": tint.tolist() if look.labelled_solid else [1.0, 1.0, 1.0],
    }


def _through_vessels(preset: Preset) -> Preset:
    """The preset with as many bounces as it takes to see through a vessel: else it is black."""
    return replace(
        preset,
        bounces=max(preset.bounces, VESSEL_BOUNCES),
        transmission_bounces=max(preset.transmission_bounces, VESSEL_BOUNCES),
    )


def _vessel(vessel: Vessel) -> MeshData:
    """A vessel's outer wall, and its inner one a little inwards, seen from the hollow."""
    outer, profile = revolve(vessel.outer, BALL_SEGMENTS), np.array(vessel.surface.profile)
    step = np.gradient(profile, axis=0)
    inward = np.stack([-step[:, 1], step[:, 0]], axis=1)
    inward /= np.maximum(np.linalg.norm(inward, axis=1, keepdims=True), 1e-12)
    inner = profile + _OVERLAP * inward
    inner[:, 0] = np.where(profile[:, 0] > 0, np.maximum(inner[:, 0], 0), 0)
    wall = revolve([(float(r), float(z)) for r, z in inner], BALL_SEGMENTS)
    turned = MeshData(wall.vertices, wall.triangles[:, ::-1].copy(), -wall.normals, wall.uv)
    return merge([outer, turned])


def _ball(radius: float) -> MeshData:
    unit = sphere(BALL_SEGMENTS)
    return MeshData(unit.vertices * np.float32(radius), unit.triangles, unit.normals, unit.uv)


def _stored(pieces: Pieces, k: int) -> MeshData:
    """The finest mesh of a piece; of one that is seen from both sides, one side."""
    slot = int(pieces.slot[k])
    count, first_index, first = pieces.slots[slot].tolist()
    last = pieces.slots[slot + 1, 2] if slot + 1 < len(pieces.slots) else len(pieces.vertices)
    rows = pieces.vertices[first:last]
    triangles = pieces.triangles[first_index // 3 : (first_index + count) // 3]
    if pieces.record[k, 23]:
        rows, triangles = rows[: len(rows) // 2], triangles[: len(triangles) // 2]
    return MeshData(rows[:, :3], triangles, rows[:, 3:6], rows[:, 6:8])


__all__ = ["DRAWN", "PRESETS", "CyclesRenderer", "Preset", "describe", "develop"]
