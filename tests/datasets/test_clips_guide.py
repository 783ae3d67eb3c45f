"""The code of docs/guide/clips.md runs as it stands there."""

import re
from pathlib import Path

import pytest
from clip_maker import make_clip

import wmeval
from wmeval.cli import main
from wmeval.datasets import set_runs
from wmeval.datasets.clips import write_clip
from wmeval.datasets.exports import EXPORTS
from wmeval.datasets.location import locate
from wmeval.datasets.sets import CLIPS

TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "clips.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
pytestmark = pytest.mark.gl


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a set named as in the guide."""
    monkeypatch.chdir(tmp_path)
    set_runs.begin(locate("clips"), {"clips": 2}, kind=CLIPS)
    for i in range(2):
        write_clip("clips", i, make_clip(i))
    set_runs.complete(locate("clips"), CLIPS)


def test_reading_and_exporting(here, capsys):
    reading, unpacking = BLOCKS[:2]
    names = {}
    exec(reading, names)
    capsys.readouterr()
    exec(unpacking, {})
    assert capsys.readouterr().out == "True\n"
    assert names["masks"].shape == (3, *names["depth"].shape)
    assert names["flow"].shape == (*names["depth"].shape, 2)
    command = re.search(r"```bash\nwmeval (export .*?)\n```", TEXT)[1]
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 0


def test_training(here):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    names = {"torch": torch, "wmeval": wmeval}
    exec(BLOCKS[-1], names)
    assert len(list(names["loader"])) == 1


def test_every_format_is_in_the_table():
    assert re.findall(r"^\| `(\w+)`", TEXT, re.MULTILINE) == list(EXPORTS)
