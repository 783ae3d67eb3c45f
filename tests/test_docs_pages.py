"""What docs/build.py writes from tables, and where the README's links lead."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from wmeval.envs import ENVIRONMENTS, every_row
from wmeval.eval.metrics import METRICS
from wmeval.layers import LAYERS
from wmeval.records import FIELDS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("environments", every_row()),
        ("plans", ENVIRONMENTS),
        ("records", [*FIELDS, *LAYERS]),
        ("metrics", METRICS),
        ("commands", ["wmeval rollout", "wmeval pair", "wmeval report", "wmeval doctor"]),
        ("speed", ["machine"]),
    ],
)
def test_pages_tell_of_every_row(build, page, names):
    text = build.PAGES[page]()
    assert [name for name in names if name not in text] == []
    # Tables are whole: each row has as many cells as its head.
    for block in re.findall(r"(?:^\|.*\|$\n)+", text, flags=re.M):
        cells = {len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(cells) == 1, block


def test_layers_as_colours(build):
    """Every picture of the gallery is (H, W, 3) uint8, and tells what it should tell apart."""
    np = pytest.importorskip("numpy")
    pictures = pytest.importorskip("docs.pictures")
    masks = np.array([[0, 1, 2], [3, 3, 1 << 63]], np.uint64)
    colors = pictures.masks_picture(masks)
    assert colors.shape == (2, 3, 3)
    assert len({tuple(c) for c in colors.reshape(-1, 3).tolist()}) == 5
    assert (colors[0, 0] < 40).all()
    # A body's own shadow has the colour of its instance; two shadows are mixed.
    assert (colors[0, 1:] == pictures.ids_picture(np.arange(3))[1:]).all()
    assert np.abs(colors[1, 0] - colors[0, 1:].mean(axis=0)).max() <= 1
    flow = np.zeros((2, 2, 2), np.float32)
    assert pictures.flow_picture(flow) is None
    flow[0, 0], flow[0, 1], flow[1, 0] = (3, 0), (-3, 0), np.nan
    right, left, unknown, still = pictures.flow_picture(flow).reshape(-1, 3).tolist()
    assert right == [255, 0, 0]
    assert left == [0, 255, 255]
    assert unknown == [127, 127, 127]
    assert still == [255, 255, 255]


def test_the_readmes_links_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)]+)\)", text) if "://" not in t]
    assert len(targets) > 5
    assert [t for t in targets if not (ROOT / t).exists()] == []
    ignored = subprocess.run(
        ["git", "check-ignore", *targets], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ignored.stdout == ""
