"""A room imports only from rooms below it, neighbours not at all, and no circles."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wmeval
from wmeval.layers import LAYERS, layers_of

ROOT = Path(wmeval.__file__).parent
FLOORS = {
    "assets": 2,
    "jobs": 2,
    "sim": 3,
    "datasets": 4,
    "envs": 5,
    "eval": 6,
    "generators": 6,
    "tables": 7,
    "doctor": 7,
    "cli": 8,
}


def room_of(module):
    """Room of a dotted module name; the foundation is room ""."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else ""


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("wmeval"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("wmeval"))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    module = ".".join(("wmeval", *path.relative_to(ROOT).with_suffix("").parts))
    if module == "wmeval.__init__":
        return  # registers the environments by name
    here = room_of(module)
    for target in imports_of(path):
        there = room_of(target)
        if there != here:
            assert FLOORS.get(there, 1) < FLOORS.get(here, 1), f"{module} imports {target}"


def test_import_is_light():
    """No GL, no heavy library before it is used."""
    code = (
        "import sys, wmeval; heavy = {'moderngl', 'cv2', 'h5py', 'zarr', 'av', 'pybullet', 'scipy',"
        "'matplotlib', 'torch', 'bpy', 'trimesh'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_layers_are_chosen_by_name():
    assert [x.name for x in layers_of("depth,ids,depth")] == ["depth", "ids"]
    assert LAYERS["depth"].empty(2, 3).shape == (2, 3)
    assert LAYERS["flow"].empty(2, 3).shape == (2, 3, 2)
    with pytest.raises(ValueError, match="unknown layer 'dept'"):
        layers_of("dept")
