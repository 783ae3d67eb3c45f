"""RigidBench's evaluation as a frozen suite: the clips' worlds, and every command takes it."""

import json
import shutil

import numpy as np
import pytest

import wmeval
from wmeval.assets.cards import library
from wmeval.cli import main
from wmeval.datasets.location import locate
from wmeval.datasets.sets import CLIPS, check_set, sealed
from wmeval.datasets.suite import read_suite
from wmeval.datasets.validate import validate
from wmeval.envs.case import Case
from wmeval.errors import UserError
from wmeval.eval.pair import PairConfig, run_pairs
from wmeval.generators.manifest import evaluation_manifest
from wmeval.generators.manifest_cases import cases_of_manifest
from wmeval.generators.rigidbench import generate_rigidbench, rows_of
from wmeval.generators.suites import build_suite

pytestmark = pytest.mark.gl
FALLS = {"tasks": ["free_fall"], "limit": 2}
SIZE = {"width": 96, "height": 64}


@pytest.fixture(scope="module")
def cases():
    return cases_of_manifest("eval", **FALLS, **SIZE)


@pytest.fixture(scope="module")
def suite(tmp_path_factory, cases):
    return build_suite(cases, tmp_path_factory.mktemp("suite") / "suite")


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    out = tmp_path_factory.mktemp("clips") / "set"
    assert generate_rigidbench("eval", out, workers=0, **FALLS, **SIZE).complete
    return out


def run(*words):
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


def published(path, rows):
    path.write_text(json.dumps([row.model_dump(mode="json") for row in rows]))
    return path


def test_cases_are_the_clips_of_their_rows(suite, clips):
    assert validate(suite.path) == []
    rows = [r for r in evaluation_manifest(library()) if r.task_type == "free_fall"][:2]
    assert list(suite.case_ids) == [row.sample_id for row in rows]
    for row, entry, clip in zip(rows, suite.cases(), wmeval.open(clips), strict=True):
        case = Case.model_validate(entry.case)
        assert case.options["row"] == row.model_dump(mode="json")
        assert case.env_id == "RigidBench/FreeFall-v0"
        assert case.plan.prompt == clip.facts.full_prompt
        assert case.plan.negative_prompt == clip.facts.negative_prompt
        reference = entry.reference()
        assert len(reference.log) == 48 * 30 + 1  # every substep
        assert reference.log.state.sha256() == clip.rollout.log.state.sha256()
        assert np.array_equal(reference.frames.layers["depth"], clip.depth[:])
        assert np.array_equal(entry.seed_frame(), reference.frames.layers["rgb"][0])


def test_it_is_resumed_and_the_same_from_the_published_file(suite, cases, tmp_path):
    half = tmp_path / "half"
    shutil.copytree(suite.path, half)
    (half / "suite.json").unlink()
    shutil.rmtree(half / "cases" / cases[1].case_id)
    rows = [r for r in evaluation_manifest(library()) if r.task_type == "free_fall"][:2]
    file = published(tmp_path / "rows.json", rows)
    lines = []
    again = build_suite(cases_of_manifest(file, **SIZE), half, progress=lines.append)
    assert lines == [f"{rows[0].sample_id}: kept", f"{rows[1].sample_id}: made"]
    assert again.content_hash == suite.content_hash


@pytest.mark.accept
def test_export_and_pair_take_it(suite, tmp_path):
    card = tmp_path / "model.yaml"
    card.write_text(
        "name: m\nfps: 24\nframes_per_action: 4\nchunk: 1\ncontext_length: 1\nwidth: 96\n"
        "height: 64\nparadigm: language\nmode: clip\n"
    )
    out = tmp_path / "cases"
    asked = ["--suite", suite.path, "--model-card", card, "--generations", "1"]
    assert run("cases", "export", *asked, "--out", out) == 0
    controls = json.loads((out / suite.case_ids[0] / "controls.json").read_text())["controls"]
    told = json.loads((out / suite.case_ids[0] / "case.json").read_text())
    assert told["prompt"] == suite.case(suite.case_ids[0]).case["plan"]["prompt"]
    assert len(controls) == 12
    assert set(map(str, controls)) == {told["prompt"]}, "a prompt model is told the prompt"

    config = PairConfig(
        env_id="RigidBench/FreeFall-v0", candidate="frozen", plan="clip", suite=str(suite.path)
    )
    configs = [config.model_copy(update={"candidate": c}) for c in ("frozen", "twin")]
    frozen, twin = run_pairs(configs, tmp_path / "pairs")
    assert frozen.config["suite_content"] == twin.config["suite_content"] == suite.content_hash
    assert {c.case_id for c in twin.cases} == set(suite.case_ids)
    same = [(row.value, row.pixel_floor) for row in twin.rows if row.key[-1] == "classical"]
    assert same
    assert all(value == floor for value, floor in same), "its pictures are the reference's own"
    values = {row.key: row.value for row in frozen.rows}
    assert values["rel_epe_dyn", "picture", "classical"] == pytest.approx(1.0, abs=0.01)


def test_training_refuses_the_seeds_of_a_suite(suite, tmp_path):
    cards = library()
    rows = [r for r in evaluation_manifest(cards) if r.task_type == "free_fall"]
    # Another seed's manifest is not among those that are always held back.
    theirs = evaluation_manifest(cards, 7)[0].model_copy(update={"sample_id": "theirs"})
    file = published(tmp_path / "rows.json", [theirs.model_copy(update={"split": "train"})])
    assert len(rows_of(file, cards)) == 1
    strange = tmp_path / "strange"
    shutil.copytree(suite.path, strange)
    path = strange / "cases" / rows[0].sample_id / "case.json"
    document = json.loads(path.read_text())
    document["case"]["plan"]["reset_options"]["row"]["seed"] = theirs.seed
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match="belongs to the evaluation"):
        rows_of(file, cards, hold_back=[strange])


def test_what_is_no_evaluation_is_refused(tmp_path, capsys):
    row = evaluation_manifest(library())[0]
    with pytest.raises(UserError, match="manifest train is for training"):
        cases_of_manifest("train")
    theirs = row.model_copy(update={"split": "train", "seed": 5})
    training = published(tmp_path / "train.json", [theirs])
    with pytest.raises(UserError, match="is of the training: a suite judges"):
        cases_of_manifest(training)
    twins = [row, row.model_copy(update={"sample_id": "other"})]
    with pytest.raises(UserError, match=r"'00000' and 'other' of .* have one seed"):
        cases_of_manifest(published(tmp_path / "twins.json", twins))
    for words, problem in (
        (["--manifest", "eval", "--env", "BallRoller"], "leave those out"),
        (["--env", "BallRoller"], "needs --env and --plan, or --manifest"),
        (["--env", "BallRoller", "--plan", "left", "--limit", "1"], "choose rows of a --manifest"),
    ):
        assert run("suite", "build", *words, "--out", tmp_path / "out") == 2
        assert problem in capsys.readouterr().err


def test_a_complete_set_states_its_content_hash(clips, tmp_path):
    manifest = json.loads((clips / "manifest.json").read_text())
    stated = manifest["content_hash"]
    assert stated == wmeval.open(clips).content_hash != wmeval.open(clips)[:1].content_hash
    assert stated in (clips / "README.md").read_text()
    assert generate_rigidbench("eval", clips, workers=0, **FALLS, **SIZE).content_hash == stated
    grown = {**FALLS, "limit": 3}
    shutil.copytree(clips, tmp_path / "set")
    part = generate_rigidbench(
        "eval", tmp_path / "set", workers=0, shard="0/3", **{**grown, **SIZE}
    )
    assert (part.complete, part.content_hash) == (False, None)
    assert not (tmp_path / "set" / "README.md").exists()
    # A manifest that states another hash than its rows have is found.
    place = locate(clips)
    manifest.pop("sha256")
    (clips / "manifest.json").write_bytes(sealed({**manifest, "content_hash": "0" * 64}))
    (problem,) = check_set(place, lambda _: [], CLIPS)
    assert "does not state the content hash of its rows" in problem
    (clips / "manifest.json").write_bytes(sealed(manifest | {"content_hash": stated}))
    assert check_set(place, lambda _: [], CLIPS) == []


def test_the_command_says_the_hash(suite, tmp_path, capsys):
    words = ["--manifest", "eval", "--tasks", "free_fall", "--limit", "2", "--size", "96x64"]
    out = tmp_path / "suite"
    shutil.copytree(suite.path, out)
    assert run("suite", "build", *words, "--out", out) == 0
    assert f"2 cases, content hash {suite.content_hash}" in capsys.readouterr().out
    assert read_suite(out).content_hash == suite.content_hash
