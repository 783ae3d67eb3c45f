"""The worker that reads a .blend and writes a .glb.

It runs under an interpreter with `bpy`, by path: nothing of this package but the worker boundary is
imported. Scripts in the file are not run.
"""

from __future__ import annotations

import os

import bpy

from wmeval.errors import UserError, one_line
from wmeval.jobs.worker import Buffers, Handler, Header


def convert(header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
    """Write what a render of the file's scene shows: meshes, modifiers applied, materials."""
    try:
        bpy.ops.wm.open_mainfile(filepath=header["source"], load_ui=False, use_scripts=False)
    except RuntimeError as error:
        raise UserError(f"Blender cannot open it: {one_line(error)}") from error
    missing = [
        image.name
        for image in bpy.data.images
        if image.source == "FILE" and image.users and not image.packed_file and not image.has_data
        and not os.path.isfile(bpy.path.abspath(image.filepath))
    ]  # fmt: skip
    if missing:
        raise UserError(
            f"its picture {missing[0]!r} is not there: pack it (File, External Data, Pack "
            "Resources)"
        )
    try:
        bpy.ops.export_scene.gltf(
            filepath=header["target"], export_format="GLB", export_yup=True, export_apply=True,
            export_cameras=False, export_lights=False, export_animations=False,
            export_skins=False, export_morph=False, use_renderable=True,
        )  # fmt: skip
    except RuntimeError as error:
        raise UserError(f"Blender cannot write it as .glb: {one_line(error)}") from error
    return {"bytes": os.path.getsize(header["target"])}, {}


def handlers() -> dict[str, Handler]:
    """Verbs: convert."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return {"convert": convert}
