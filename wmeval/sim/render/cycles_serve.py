"""The worker of renderer `cycles`: one scene in Blender behind two verbs.

It runs under an interpreter with `bpy`, by path: nothing of this package but the worker boundary is
imported. Colour comes from one Blender scene; ids, depth and normals from a second one with the
opaque pieces only, one sample at each pixel's centre; glass ids from a third with the glass.

A render is written as an uncompressed multilayer EXR file and read back here: the passes as they
are, without a compositor, whose interfaces differ between Blender 4.5 and 5.0.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.jobs.worker import Buffers, Handler, Header

_NOWHERE = 1e9
"""Depths from here on [m] are Blender's "nothing"."""
_GPU_KINDS = ("OPTIX", "CUDA", "HIP", "ONEAPI", "METAL")
_EXR_MAGIC = 20000630
_LEAST_FILTER = 0.01
"""Pixel filter width [px] of labels: they are sampled at the pixel's centre."""

_OPEN, _CLOSED = (1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 1.0)
"""Colours of objects; labels look through the backs of open ones."""

Material = dict[str, Any]


class _Stage:
    """One scene."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    # --- building ---

    def build(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Make meshes, materials, lights, cameras and the three scenes."""
        bpy.ops.wm.read_factory_settings(use_empty=True)
        self._file = Path(header["folder"]) / "passes.exr"
        self._color = bpy.context.scene
        self._labels = bpy.data.scenes.new("labels")
        self._glass = bpy.data.scenes.new("glass")
        self._scenes = (self._color, self._labels, self._glass)
        self._device = _use_device(header["device"])
        images = [_texture(texels) for texels in buffers["textures"]]
        self._materials = [_material(m, images) for m in header["materials"]]
        self._opened: dict[str, Any] = {}
        flat = _flat()
        self._meshes = [_mesh(k, buffers) for k in range(header["meshes"])]
        self._objects = []
        for number, piece in enumerate(header["pieces"]):
            mesh = self._meshes[piece["mesh"]]
            made = bpy.data.objects.new(f"piece_{number:05d}", mesh)
            if not mesh.materials:
                mesh.materials.append(None)
            made.material_slots[0].link = "OBJECT"
            made.material_slots[0].material = self._materials[piece["material"]]
            made.color = _CLOSED
            made.pass_index = number + 1
            self._color.collection.objects.link(made)
            (self._glass if piece["glass"] else self._labels).collection.objects.link(made)
            self._objects.append(made)
        self._drawn = self._seen = np.ones(len(self._objects), bool)
        self._open = np.zeros(len(self._objects), bool)
        self._poses = np.full((len(self._objects), 4, 4), np.nan)
        self._camera = _put_camera(self._scenes)
        lamp = bpy.data.lights.new("sun", "SUN")
        self._sun = bpy.data.objects.new("sun", lamp)
        self._color.collection.objects.link(self._sun)
        self._world = _World(self._color)
        for scene in self._scenes:
            _settings(scene, header["threads"], self._device)
        self._denoiser = _quality(self._color, header["preset"], self._device)
        for scene in self._scenes[1:]:
            _one_sample(scene, flat)
        return {
            "version": bpy.app.version_string,
            "device": self._device,
            "denoiser": self._denoiser,
        }, {}

    # --- drawing ---

    def draw(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Render what is asked for: "color" (H, W, 3), "labels" and "glass" passes."""
        self._put(buffers)
        self._look(header, buffers)
        if "sun" in header:
            self._shine(header["sun"])
        if "seen_sky" in buffers:
            self._world.put(buffers["seen_sky"], buffers["lit_sky"])
        width, height = header["width"], header["height"]
        out: Buffers = {}
        if "color" in header["ask"]:
            passes = self._render(self._color, width, height)
            out["color"] = np.stack([passes[f"Combined.{c}"] for c in "RGB"], axis=-1)
        for name, scene in (("labels", self._labels), ("glass", self._glass)):
            if name in header["ask"]:
                passes = self._render(scene, width, height)
                seen = _index(passes)
                depth = passes["Depth.Z"]
                seen[depth > _NOWHERE] = 0
                out[f"{name}/piece"], out[f"{name}/depth"] = seen, depth
                out[f"{name}/normals"] = np.stack(
                    [passes[f"Normal.{axis}"] for axis in "XYZ"], axis=-1
                )
        return {}, out

    def _put(self, buffers: Buffers) -> None:
        for k in np.flatnonzero((buffers["poses"] != self._poses).any(axis=(1, 2))):
            self._objects[k].matrix_world = Matrix(buffers["poses"][k].tolist())
        self._poses = buffers["poses"]
        for k in np.flatnonzero(buffers["drawn"] != self._drawn):
            self._objects[k].hide_render = not buffers["drawn"][k]
        self._drawn = buffers["drawn"]
        for k in np.flatnonzero(buffers["seen"] != self._seen):
            self._objects[k].visible_camera = bool(buffers["seen"][k])
        self._seen = buffers["seen"]
        for k in np.flatnonzero(buffers["open"] != self._open):
            self._open_up(self._objects[k], bool(buffers["open"][k]))
        self._open = buffers["open"]
        for name in buffers:
            if name.startswith("deform/") and name.endswith("/vertices"):
                number = name.split("/")[1]
                mesh = self._meshes[int(number)]
                mesh.vertices.foreach_set("co", buffers[name].ravel())
                _set_normals(mesh, buffers[f"deform/{number}/normals"])
                mesh.update()

    def _open_up(self, made: Any, on: bool) -> None:
        """Let the camera look out through the backs of an object, or no longer."""
        made.color = _OPEN if on else _CLOSED
        slot = made.material_slots[0]
        name = slot.material.name
        if on:
            if name not in self._opened:
                self._opened[name] = _see_through_backs(slot.material)
            slot.material = self._opened[name]
        else:
            slot.material = bpy.data.materials[slot.material["closed"]]

    def _look(self, header: Header, buffers: Buffers) -> None:
        camera = self._camera
        camera.data.angle_y = header["fov_y"]
        camera.data.clip_start, camera.data.clip_end = header["near"], header["far"]
        # OpenCV's camera looks along +z with y down; Blender's along -z with y up.
        camera.matrix_world = Matrix(
            (buffers["T_world_camera"] @ np.diag([1.0, -1.0, -1.0, 1.0])).tolist()
        )

    def _shine(self, sun: dict[str, Any]) -> None:
        lamp = self._sun.data
        light = np.array(sun["light"])
        strength = float(light.max())
        lamp.energy = np.pi * strength  # a white surface that faces it then shines with its light
        lamp.color = (light / max(strength, 1e-9)).tolist()
        lamp.angle = sun["angle"]
        z = np.array(sun["to_sun"])
        x = np.cross([0.0, 1.0, 0.0] if abs(z[2]) > 0.9 else [0.0, 0.0, 1.0], z)
        x /= np.linalg.norm(x)
        turn = np.eye(4)
        turn[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
        self._sun.matrix_world = Matrix(turn.tolist())

    def _render(self, scene: Any, width: int, height: int) -> dict[str, NDArray[np.float32]]:
        render = scene.render
        render.resolution_x, render.resolution_y, render.resolution_percentage = width, height, 100
        render.filepath = str(self._file)
        bpy.ops.render.render(scene=scene.name, write_still=True)
        try:
            return _read_exr(self._file.read_bytes(), width, height)
        finally:
            self._file.unlink(missing_ok=True)


class _World:
    """The sky: one picture for eyes, mirrors and clear glass, another that lights the rest.

    The sky is met by chance, not aimed at: rays then know what they are, and the two never mix.
    """

    def __init__(self, scene: Any) -> None:
        world = scene.world = bpy.data.worlds.new("sky")
        world.use_nodes = True
        world.cycles.sampling_method = "NONE"
        nodes, links = world.node_tree.nodes, world.node_tree.links
        nodes.clear()
        self._pictures = [nodes.new("ShaderNodeTexEnvironment") for _ in range(2)]
        shades = [nodes.new("ShaderNodeBackground") for _ in range(2)]
        path = nodes.new("ShaderNodeLightPath")
        looked_at = path.outputs["Is Camera Ray"]
        for name in ("Is Singular Ray", "Is Transmission Ray"):
            either = nodes.new("ShaderNodeMath")
            either.operation = "MAXIMUM"
            links.new(looked_at, either.inputs[0])
            links.new(path.outputs[name], either.inputs[1])
            looked_at = either.outputs[0]
        mix, out = nodes.new("ShaderNodeMixShader"), nodes.new("ShaderNodeOutputWorld")
        for picture, shade in zip(self._pictures, shades, strict=True):
            links.new(picture.outputs["Color"], shade.inputs["Color"])
        links.new(looked_at, mix.inputs[0])
        links.new(shades[1].outputs[0], mix.inputs[1])
        links.new(shades[0].outputs[0], mix.inputs[2])
        links.new(mix.outputs[0], out.inputs["Surface"])

    def put(self, seen: NDArray[np.float32], lit: NDArray[np.float32]) -> None:
        """Both pictures (H, 2 H, 3) linear, rows upwards."""
        for picture, texels in zip(self._pictures, (seen, lit), strict=True):
            old = picture.image
            picture.image = _image("sky", texels, linear=True)
            if old is not None:
                bpy.data.images.remove(old)


# --- parts ---------------------------------------------------------------------------------------


def _image(name: str, texels: NDArray[Any], *, linear: bool) -> Any:
    """An image of rows upwards: (H, W, 3) linear floats, or sRGB in [0, 1]."""
    height, width = texels.shape[:2]
    image = bpy.data.images.new(name, width, height, float_buffer=linear)
    image.colorspace_settings.name = "Non-Color" if linear else "sRGB"
    full = np.ones((height, width, 4), np.float32)
    full[..., :3] = texels
    image.pixels.foreach_set(full.ravel())
    image.update()
    image.pack()
    return image


def _texture(texels: NDArray[np.uint8]) -> Any:
    return _image("texture", texels / np.float32(255), linear=False)


def _mesh(number: int, buffers: Buffers) -> Any:
    vertices, triangles = buffers[f"mesh/{number}/vertices"], buffers[f"mesh/{number}/triangles"]
    mesh = bpy.data.meshes.new(f"mesh_{number:05d}")
    mesh.vertices.add(len(vertices))
    mesh.vertices.foreach_set("co", np.asarray(vertices, np.float32).ravel())
    mesh.loops.add(triangles.size)
    mesh.loops.foreach_set("vertex_index", np.asarray(triangles, np.int32).ravel())
    mesh.polygons.add(len(triangles))
    mesh.polygons.foreach_set("loop_start", np.arange(0, triangles.size, 3, dtype=np.int32))
    mesh.polygons.foreach_set("use_smooth", np.ones(len(triangles), bool))
    layer = mesh.uv_layers.new(name="uv")
    layer.uv.foreach_set("vector", buffers[f"mesh/{number}/uv"][triangles].astype("f4").ravel())
    mesh.update(calc_edges=True)
    _set_normals(mesh, buffers[f"mesh/{number}/normals"])
    return mesh


def _set_normals(mesh: Any, normals: NDArray[np.float32]) -> None:
    mesh.normals_split_custom_set_from_vertices(normals.tolist())


def _material(look: Material, images: list[Any]) -> Any:
    """Principled surface; shadows pass through glass, as they do in the raster renderer."""
    made = bpy.data.materials.new(look["name"])
    made.use_nodes = True
    nodes, links = made.node_tree.nodes, made.node_tree.links
    nodes.clear()
    texture = nodes.new("ShaderNodeTexImage")
    texture.image = images[look["texture"]]
    surface = nodes.new("ShaderNodeBsdfPrincipled")
    out = nodes.new("ShaderNodeOutputMaterial")
    if look["clear"]:
        surface.inputs["Base Color"].default_value = (1.0, 1.0, 1.0, 1.0)
    else:
        links.new(texture.outputs["Color"], surface.inputs["Base Color"])
    if look["absorbs"] is not None:
        inside = nodes.new("ShaderNodeVolumeAbsorption")
        density = max(look["absorbs"])
        inside.inputs["Density"].default_value = density
        inside.inputs["Color"].default_value = [*(1 - a / density for a in look["absorbs"]), 1.0]
        links.new(inside.outputs[0], out.inputs["Volume"])
    clear = look["transmission"]
    for name, value in (
        ("Roughness", look["roughness"]),
        ("Metallic", look["mirror"]),
        ("Specular IOR Level", 0.5 if clear else look["specular"]),
        ("IOR", look["ior"] if clear else 1.5),
        ("Transmission Weight", clear),
    ):
        surface.inputs[name].default_value = value
    result = surface.outputs[0]
    if clear:
        path, through = nodes.new("ShaderNodeLightPath"), nodes.new("ShaderNodeBsdfTransparent")
        through.inputs["Color"].default_value = [*look["shadow"], 1.0]
        mix = nodes.new("ShaderNodeMixShader")
        links.new(path.outputs["Is Shadow Ray"], mix.inputs[0])
        links.new(result, mix.inputs[1])
        links.new(through.outputs[0], mix.inputs[2])
        result = mix.outputs[0]
    links.new(result, out.inputs["Surface"])
    return made


def _flat() -> Any:
    """What all is made of for labels: opaque, but for the backs of open objects."""
    made = bpy.data.materials.new("flat")
    made.use_nodes = True
    nodes, links = made.node_tree.nodes, made.node_tree.links
    nodes.clear()
    both = nodes.new("ShaderNodeMath")
    both.operation = "MULTIPLY"
    links.new(nodes.new("ShaderNodeNewGeometry").outputs["Backfacing"], both.inputs[0])
    links.new(nodes.new("ShaderNodeObjectInfo").outputs["Color"], both.inputs[1])
    mix, out = nodes.new("ShaderNodeMixShader"), nodes.new("ShaderNodeOutputMaterial")
    links.new(both.outputs[0], mix.inputs[0])
    links.new(nodes.new("ShaderNodeBsdfDiffuse").outputs[0], mix.inputs[1])
    links.new(nodes.new("ShaderNodeBsdfTransparent").outputs[0], mix.inputs[2])
    links.new(mix.outputs[0], out.inputs["Surface"])
    return made


def _see_through_backs(material: Any) -> Any:
    """The same material, but the camera does not see its backs; shadows are the same."""
    made = material.copy()
    made["closed"] = material.name
    made.use_transparent_shadow = False
    nodes, links = made.node_tree.nodes, made.node_tree.links
    out = next(n for n in nodes if n.bl_idname == "ShaderNodeOutputMaterial")
    both, mix = nodes.new("ShaderNodeMath"), nodes.new("ShaderNodeMixShader")
    both.operation = "MULTIPLY"
    links.new(nodes.new("ShaderNodeNewGeometry").outputs["Backfacing"], both.inputs[0])
    links.new(nodes.new("ShaderNodeLightPath").outputs["Is Camera Ray"], both.inputs[1])
    links.new(both.outputs[0], mix.inputs[0])
    links.new(out.inputs["Surface"].links[0].from_socket, mix.inputs[1])
    links.new(nodes.new("ShaderNodeBsdfTransparent").outputs[0], mix.inputs[2])
    links.new(mix.outputs[0], out.inputs["Surface"])
    return made


def _put_camera(scenes: tuple[Any, ...]) -> Any:
    data = bpy.data.cameras.new("camera")
    data.sensor_fit = "VERTICAL"
    camera = bpy.data.objects.new("camera", data)
    for scene in scenes:
        scene.collection.objects.link(camera)
        scene.camera = camera
    return camera


def _use_device(wanted: str) -> str:
    """Choose what renders: "cpu", "gpu" (an error without one) or "auto"."""
    if wanted == "cpu":
        return "CPU"
    preferences = bpy.context.preferences.addons["cycles"].preferences
    for kind in _GPU_KINDS:
        try:
            preferences.compute_device_type = kind
        except TypeError:  # this build has no such kind
            continue
        preferences.refresh_devices()
        found = [d for d in preferences.devices if d.type == kind]
        if found:
            for device in preferences.devices:
                device.use = device.type == kind
            return kind
    if wanted == "gpu":
        raise UserError("device=gpu: Blender finds no GPU here: take device=cpu or auto")
    return "CPU"


def _settings(scene: Any, threads: int, device: str) -> None:
    render = scene.render
    render.engine = "CYCLES"
    render.use_persistent_data = True
    render.threads_mode = "FIXED" if threads else "AUTO"
    if threads:
        render.threads = threads
    picture = render.image_settings
    if hasattr(picture, "media_type"):  # Blender 5.0
        picture.media_type = "MULTI_LAYER_IMAGE"
    if hasattr(picture, "use_exr_interleave"):  # one part of all channels, as in 4.5
        picture.use_exr_interleave = True
    picture.file_format = "OPEN_EXR_MULTILAYER"
    picture.color_depth, picture.exr_codec = "32", "NONE"
    scene.cycles.device = "CPU" if device == "CPU" else "GPU"
    scene.cycles.seed = 0


def _quality(scene: Any, preset: dict[str, Any], device: str) -> str:
    """Set the colour scene's quality; returns the denoiser or ""."""
    cycles = scene.cycles
    cycles.samples = preset["samples"]
    cycles.use_adaptive_sampling = True
    cycles.adaptive_threshold = preset["adaptive_threshold"]
    cycles.max_bounces = preset["bounces"]
    cycles.diffuse_bounces = preset["diffuse_bounces"]
    cycles.glossy_bounces = preset["glossy_bounces"]
    cycles.transmission_bounces = preset["transmission_bounces"]
    cycles.transparent_max_bounces = max(8, preset["bounces"])
    cycles.caustics_reflective = cycles.caustics_refractive = False
    cycles.use_denoising = False
    if not preset["denoise"]:
        return ""
    names = ["OPTIX", "OPENIMAGEDENOISE"] if device == "OPTIX" else ["OPENIMAGEDENOISE"]
    for name in names:
        try:
            cycles.denoiser = name
        except TypeError:  # not in this build, or not on this device
            continue
        cycles.use_denoising = True
        return name
    return ""


def _one_sample(scene: Any, flat: Any) -> None:
    """Labels: the first surface at the pixel's centre, nothing more."""
    cycles = scene.cycles
    cycles.samples, cycles.use_adaptive_sampling, cycles.use_denoising = 1, False, False
    cycles.max_bounces = 0
    cycles.pixel_filter_type, cycles.filter_width = "BLACKMAN_HARRIS", _LEAST_FILTER
    layer = scene.view_layers[0]
    layer.use_pass_z = layer.use_pass_object_index = layer.use_pass_normal = True
    layer.material_override = flat


# --- passes --------------------------------------------------------------------------------------


def _index(passes: dict[str, NDArray[np.float32]]) -> NDArray[np.int32]:
    """Piece number plus one (H, W), 0 for none."""
    for name in ("Object Index.X", "IndexOB.X"):  # Blender 5.0, 4.5
        if name in passes:
            return np.rint(passes[name]).astype(np.int32)
    raise RuntimeError(f"Blender wrote no object index; it wrote {', '.join(sorted(passes))}")


def _read_exr(data: bytes, width: int, height: int) -> dict[str, NDArray[np.float32]]:
    """Channels (H, W) of an uncompressed float32 scanline file, by name without the view layer."""
    magic, version = struct.unpack_from("<iI", data)
    if magic != _EXR_MAGIC or version & 0x1A00:
        raise RuntimeError(f"Blender wrote no plain EXR file: flags {version:#x}")
    at, attributes = 8, {}
    while data[at] != 0:
        end = data.index(b"\0", at)
        kind_end = data.index(b"\0", end + 1)
        (size,) = struct.unpack_from("<I", data, kind_end + 1)
        start = kind_end + 5
        attributes[data[at:end].decode()] = data[start : start + size]
        at = start + size
    if attributes["compression"] != b"\0":
        raise RuntimeError("Blender compressed its EXR file")
    names = []
    listed, k = attributes["channels"], 0
    while listed[k] != 0:
        end = listed.index(b"\0", k)
        if struct.unpack_from("<i", listed, end + 1)[0] != 2:
            raise RuntimeError(f"channel {listed[k:end]!r} is not float32")
        names.append(listed[k:end].decode())
        k = end + 17
    first = at + 1 + 8 * height  # after the table of line offsets
    line = 8 + 4 * width * len(names)
    if len(data) < first + line * height:
        raise RuntimeError(f"Blender's EXR file is not {width}x{height}")
    raw = np.frombuffer(data, np.uint8, line * height, first).reshape(height, line)
    rows = raw[:, :4].copy().view("<i4")[:, 0]
    values = raw[:, 8:].copy().view("<f4").reshape(height, len(names), width)
    values = values[np.argsort(rows)]
    return {name.partition(".")[2]: values[:, k] for k, name in enumerate(names)}


def handlers() -> dict[str, Handler]:
    """Verbs: build, draw."""
    # What Blender tells of its progress would fill every error's last words.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    stage = _Stage()
    return {"build": stage.build, "draw": stage.draw}
