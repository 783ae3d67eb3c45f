"""Every command and every Python block of the README and the guides runs, in the order they stand.

A block below a line ``<!-- not run: reason -->`` is left out; the reason is read by people. A
``text`` block directly below a block is what that one prints; ``...`` in it stands for anything.
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
    r"(?:<!-- not run: ([^>]+?) -->\n+)?```(bash|python|yaml)([^\n]*)\n(.*?)```"
    r"(?:\n\n```text\n(.*?)```)?",
    re.S,
)
# CI runs these itself; a block of them only is covered there.
TARGETS = "setup|demo|test|accept|engines|sweep|lint|docs|bench"
BY_CI = re.compile(rf"^\s*(make ({TARGETS})\b|git clone|cd wmeval|#|$)")


def blocks(page):
    for reason, language, title, body, printed in BLOCK.findall(page.read_text()):
        if reason or all(BY_CI.match(line) for line in body.splitlines()):
            continue
        yield language, title.strip(), body, printed


def agrees(output, printed):
    """Whether an output is what a page shows; ``...`` stands for anything, nothing too."""
    pattern = ".*".join(re.escape(part) for part in printed.split("..."))
    return re.fullmatch(pattern, output, re.S) is not None


@pytest.mark.parametrize(
    ("output", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a [1] c\n", "a ... c\n", True),
        ("a [1] d\n", "a ... c\n", False),
        ("axc\n", "a.c\n", False),
    ],
)
def test_shown_output_is_compared(output, printed, same):
    assert agrees(output, printed) is same


def test_the_first_example_prints_what_the_readme_shows():
    body, printed = next((b, p) for _, _, b, p in blocks(PAGES[0]) if p)
    done = subprocess.run(
        [sys.executable, "-c", body], capture_output=True, text=True, timeout=120, check=False
    )
    assert agrees(done.stdout, printed), done.stdout + done.stderr


def test_left_out_blocks_say_why():
    for page in PAGES:
        for reason, *_ in BLOCK.findall(page.read_text()):
            assert reason == "" or len(reason) > 10, page


@pytest.mark.accept
@pytest.mark.gl
@pytest.mark.timeout(2700)
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_documented_commands_run(page, tmp_path):
    bin_folder = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for language, title, body, printed in blocks(page):
        if title.startswith("title="):  # a file that later blocks use
            (tmp_path / title.removeprefix("title=").strip("\"'")).write_text(body)
            continue
        argv = ["bash", "-euc", body] if language == "bash" else [sys.executable, "-c", body]
        done = subprocess.run(
            argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=1800, check=False
        )
        assert done.returncode == 0, f"{page.name}:\n{body}\n{done.stdout}\n{done.stderr}"
        assert not printed or agrees(done.stdout, printed), f"{page.name}:\n{body}\n{done.stdout}"
