"""Every command and every Python block of the README and the guides runs, in the order they stand.

A block below a line ``<!-- not run: reason -->`` is left out; the reason is read by people.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- not run: ([^>]+?) -->\n+)?```(bash|python|yaml)([^\n]*)\n(.*?)```", re.S
)
# CI runs these itself; a block of them only is covered there.
BY_CI = re.compile(r"^\s*(make (setup|demo|test|accept|lint|docs|bench)\b|git clone|cd wmeval|#|$)")


def blocks(page):
    for reason, language, title, body in BLOCK.findall(page.read_text()):
        if reason or all(BY_CI.match(line) for line in body.splitlines()):
            continue
        yield language, title.strip(), body


def test_left_out_blocks_say_why():
    for page in PAGES:
        for reason, *_ in BLOCK.findall(page.read_text()):
            assert reason == "" or len(reason) > 10, page


@pytest.mark.accept
@pytest.mark.gl
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_documented_commands_run(page, tmp_path):
    bin_folder = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for language, title, body in blocks(page):
        if title.startswith("title="):  # a file that later blocks use
            (tmp_path / title.removeprefix("title=").strip("\"'")).write_text(body)
            continue
        argv = ["bash", "-euc", body] if language == "bash" else [sys.executable, "-c", body]
        done = subprocess.run(
            argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{page.name}:\n{body}\n{done.stdout}\n{done.stderr}"
