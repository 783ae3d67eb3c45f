"""What `wmeval validate` says of sets that are not complete, and of the documents beside them."""

import json

import pytest
from test_card import JOB, clip_of

from wmeval.cli import main
from wmeval.datasets import card, set_runs
from wmeval.datasets.bundle_sets import write_bundle_of
from wmeval.datasets.card import describe_set
from wmeval.datasets.clips import write_clip
from wmeval.datasets.croissant import Publication
from wmeval.datasets.location import locate
from wmeval.datasets.sets import BUNDLES, CLIPS, ROLLOUTS
from wmeval.datasets.validate import examine, validate


@pytest.fixture(scope="module")
def clips():
    return [clip_of(i) for i in range(2)]


def begun(url, clips, *, count=3, kind=CLIPS):
    place = locate(url)
    set_runs.begin(place, {**JOB, kind.samples: count}, kind=kind)
    write = {"clips": write_clip, "bundles": write_bundle_of}[kind.samples]
    for number, clip in enumerate(clips):
        write(place.url, number, clip)
    return place


def said(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main(list(map(str, words)))
    return stop.value.code, capsys.readouterr().out


@pytest.mark.parametrize("kind", [CLIPS, BUNDLES])
def test_a_set_that_is_not_complete_is_said_to_be_so(tmp_path, clips, kind, capsys):
    place = begun(tmp_path / "set", clips, kind=kind)
    set_runs.note_failure(place, 2, "no layout", kind)
    assert validate(place.url) == []
    code, out = said(capsys, "validate", place.url)
    assert code == 0
    assert f"2 of 3 {kind.samples}, 1 failed; run its `wmeval generate` again" in out
    assert out.endswith(": valid so far, not complete\n")
    # In a folder of other things, too.
    assert len(examine(tmp_path).unfinished) == 1
    set_runs.forget_failure(place, 2)
    begun(tmp_path / "whole", clips, count=2, kind=kind)
    found = examine(tmp_path / "whole").unfinished
    assert found == [f"{tmp_path}/whole: 2 of 2 {kind.samples}, 0 failed; "
                     f"`wmeval merge {tmp_path}/whole` completes it"]  # fmt: skip
    assert said(capsys, "merge", tmp_path / "whole")[0] == 0
    assert said(capsys, "validate", tmp_path / "whole") == (0, f"{tmp_path}/whole: valid\n")
    assert examine(tmp_path / "whole").notes == []


def test_a_set_of_rollouts_without_any_is_not_complete(tmp_path, capsys):
    set_runs.begin(locate(tmp_path / "set"), {"episodes": 2}, kind=ROLLOUTS)
    code, out = said(capsys, "validate", tmp_path / "set")
    assert code == 0
    assert "0 of 2 episodes, 0 failed; run its `wmeval generate rollouts` again" in out


def test_damage_in_an_unfinished_set_is_still_damage(tmp_path, clips, capsys):
    place = begun(tmp_path / "set", clips)
    (tmp_path / "set" / "clips" / "000000.mp4").write_bytes(b"no film")
    code, out = said(capsys, "validate", place.url)
    assert code == 2
    assert "000000.mp4" in out
    assert "2 of 3 clips" in out
    assert ": valid" not in out


@pytest.mark.parametrize("kind", [CLIPS, BUNDLES])
def test_every_flip_in_a_document_of_a_set_is_said(tmp_path, clips, kind, capsys):
    place = begun(tmp_path / "set", clips, count=2, kind=kind)
    set_runs.complete(place, kind)
    for name in (card.README, card.INDEX, card.CROISSANT):
        path = tmp_path / "set" / name
        whole = path.read_bytes()
        for at in range(0, len(whole), len(whole) // 9):
            flipped = bytearray(whole)
            flipped[at] ^= 1
            path.write_bytes(bytes(flipped))
            wrong, notes = card.check_card(place, kind)
            if name == card.CROISSANT:
                assert ["croissant.json: " in line for line in wrong] == [True], at
                assert notes == []
            else:
                assert wrong == []
                assert ["changed by hand" in line for line in notes] == [True], at
        assert said(capsys, "validate", place.url)[0] == (2 if name == card.CROISSANT else 0)
        path.write_bytes(whole)
    (tmp_path / "set" / card.README).unlink()
    found = examine(place.url)
    assert found.problems == []
    assert "README.md: is missing; `wmeval describe" in found.notes[0]
    describe_set(place.url, publication=Publication("https://example.org", "Us", "2026-01-31"))
    assert examine(place.url).notes == [] == validate(place.url)


def test_metadata_of_another_state_of_the_set_are_noticed(tmp_path, clips):
    place = begun(tmp_path / "set", clips[:1], count=1)
    set_runs.complete(place, CLIPS)
    before = place.get(card.CROISSANT, limit=None)
    begun(tmp_path / "set", clips, count=2)
    set_runs.complete(place, CLIPS)
    place.put(card.CROISSANT, before)
    assert ["another state of the set" in p for p in validate(place.url)] == [True]
    json.loads(before)
