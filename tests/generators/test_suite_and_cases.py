"""Suites, the hand-off to a cluster and back, with the real engine and renderer."""

import json
import shutil
from fractions import Fraction as F
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmeval.datasets.png import read_png, write_png
from wmeval.datasets.suite import content_hash, read_suite, verify_suite
from wmeval.datasets.validate import validate
from wmeval.datasets.video import read_mp4, write_mp4
from wmeval.envs.adapters import channels_of, make_adapter
from wmeval.envs.candidates import parse_candidate
from wmeval.envs.case import Case, resized_context
from wmeval.envs.model import ModelError, ModelSpec
from wmeval.envs.wrapper import drive
from wmeval.errors import UserError
from wmeval.generators.cases import SEED_FRAME_LIKENESS, check_cases, export_cases, likeness
from wmeval.generators.suites import build_suite, cases_of
from wmeval.jobs.atomic import claim
from wmeval.plan import ActionPlan

pytestmark = pytest.mark.gl
TA = F(1, 60)


def short_plan(name, value, dimensions=("causality", "controllability")):
    return ActionPlan(
        name=name,
        scene="WMEval/BeamDomino-v0",
        dimensions=dimensions,
        doc="",
        duration="0.5",
        segments=[{"start": 0, "end": "0.3", "values": {"force_z": value}}],
        reset_options={"shape": "canonical"},
        prompt="Größe: the ball rolls.",
        negative_prompt="blur",
    )


def case(name="push", value=1.0, **kwargs):
    return Case(env_id="BeamDomino", plan=short_plan(name, value), width=64, height=48, **kwargs)


CASES = (case(), case("pull", -0.5, scene_seed=3))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("suite") / "s"
    lines = []
    suite = build_suite(CASES, out, fps=(24, 60), layers=("rgb", "depth"), progress=lines.append)
    assert lines == [f"{c.case_id}: made" for c in CASES]
    return suite


@pytest.fixture
def suite(built, tmp_path):
    shutil.copytree(built.path, tmp_path / "copy")
    return read_suite(tmp_path / "copy")


# --- suites -------------------------------------------------------------------------------------


def test_a_suite_holds_what_scoring_needs(built):
    assert read_suite(built.path).content_hash == built.content_hash
    assert validate(built.path) == []
    entry = built.case(CASES[1].case_id)
    assert Case.model_validate(entry.case) == CASES[1]
    assert (entry.dt, entry.control_period, entry.rates) == (F(1, 240), TA, (F(24), F(60)))
    reference = entry.reference(F(24))
    assert len(reference.log) == 121  # every substep of half a second
    assert reference.frames.times == tuple(F(j, 24) for j in range(13))
    assert len(entry.reference(F(60)).frames) == 31
    # The seed frame is the reference's frame 0, and the environment's own picture.
    assert np.array_equal(entry.seed_frame(), reference.frames.layers["rgb"][0])
    with CASES[1].open() as env:
        assert np.array_equal(entry.seed_frame(), env.draw(("rgb",))["rgb"])
        assert reference.log.state.rows([0]).sha256() == env.log.state.sha256()
        assert np.array_equal(entry.T_world_camera, env.log.cameras.T_world_camera[0, 0])
    assert json.loads((built.path / "suite.json").read_text())["note"].startswith("own scenes")


def test_building_again_changes_nothing_and_the_hash_follows_the_content(built, tmp_path):
    lines = []
    again = build_suite(CASES, built.path, fps=(24, 60), progress=lines.append)
    assert again.content_hash == built.content_hash
    assert lines == [f"{c.case_id}: kept" for c in CASES]
    # Elsewhere, from nothing, the same bytes.
    elsewhere = build_suite(CASES[:1], tmp_path / "a", fps=(24, 60), layers=("rgb", "depth"))
    name = f"cases/{CASES[0].case_id}/"
    mine = {n: v for n, v in built.files.items() if n.startswith(name)}
    assert dict(elsewhere.files) == mine
    assert elsewhere.content_hash != built.content_hash


def test_an_interrupted_build_goes_on(built, tmp_path):
    half = tmp_path / "half"
    shutil.copytree(built.path, half)
    (half / "suite.json").unlink()
    shutil.rmtree(half / "cases" / CASES[1].case_id)
    lines = []
    done = build_suite(CASES, half, fps=(24, 60), layers=("rgb", "depth"), progress=lines.append)
    assert lines == [f"{CASES[0].case_id}: kept", f"{CASES[1].case_id}: made"]
    assert done.content_hash == built.content_hash


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


REBUILD = partial(build_suite, CASES, fps=(24, 60), layers=("rgb", "depth"))


@pytest.mark.parametrize("finished", [True, False])
def test_building_again_mends_what_is_damaged(built, suite, finished):
    if not finished:
        (suite.path / "suite.json").unlink()
    push, pull = (suite.path / "cases" / c.case_id for c in CASES)
    flip(push / "reference-24.h5")
    lines = []
    assert REBUILD(suite.path, progress=lines.append).content_hash == built.content_hash
    assert lines == [f"{push.name}: made again", f"{pull.name}: kept"]
    (push / "context" / "000.png").unlink()
    (pull / "case.json").write_text("{")
    (pull / "reference-60.h5").unlink()
    assert REBUILD(suite.path).content_hash == built.content_hash
    assert validate(suite.path) == []


def test_a_damaged_index_says_what_mends_it(built, suite):
    (suite.path / "suite.json").write_text("{")
    for attempt in (read_suite, REBUILD):
        with pytest.raises(UserError, match=r"make it anew with `wmeval suite build --overwrite`"):
            attempt(suite.path)
    assert "--overwrite" in validate(suite.path)[0]
    assert REBUILD(suite.path, overwrite=True).content_hash == built.content_hash


def test_a_finished_suite_is_not_mended_into_another(built, suite):
    """Made by another version, a case may come out otherwise: then the hash would not hold."""
    index = suite.path / "suite.json"
    document = json.loads(index.read_text())
    name = next(n for n in document["files"] if n.endswith("reference-24.h5"))
    document["files"][name]["sha256"] = "0" * 64
    files = {n: entry["sha256"] for n, entry in document["files"].items()}
    index.write_text(json.dumps({**document, "content_hash": content_hash(files)}))
    before = (suite.path / name).read_bytes()
    with pytest.raises(UserError, match="made now it differs from the suite's"):
        REBUILD(suite.path)
    assert (suite.path / name).read_bytes() == before


@pytest.mark.parametrize("name", ["thesis.tex", "cases/notes.txt"])
def test_files_of_others_are_never_touched(suite, tmp_path, name):
    for out in (suite.path, tmp_path / "mine"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
        for overwrite in (False, True):
            with pytest.raises(UserError, match=rf"wmeval did not write here \({name}\)"):
                REBUILD(out, overwrite=overwrite)
        assert (out / name).read_text() == "mine"
    assert (suite.path / "suite.json").is_file()


def test_two_builds_of_one_suite_at_once_are_refused(suite):
    with claim(suite.path), pytest.raises(UserError, match="another run is writing here"):
        REBUILD(suite.path)


def test_cases_can_be_shortened():
    long, short = (cases_of("BeamDomino", ("canonical",), (0,), max_steps=n)[0] for n in (None, 7))
    assert "max_steps" not in long.env_kwargs
    with short.open() as env:
        assert len(short.actions(env)) == 7


def test_a_changed_suite_is_refused(suite):
    png = next(n for n in suite.files if n.endswith(".png"))
    data = bytearray((suite.path / png).read_bytes())
    data[-20] ^= 1
    (suite.path / png).write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"000.png: changed since the suite was built"):
        read_suite(suite.path)
    assert len(verify_suite(suite)) == 1
    (suite.path / png).unlink()
    (suite.path / "cases" / "extra.txt").write_text("x")
    assert [p.split(": ", 1)[1].split(";")[0] for p in verify_suite(suite)] == [
        "missing from the suite",
        "not part of the suite",
    ]
    assert validate(suite.path) == verify_suite(suite)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "wmeval-suite/2"}, "format is 'wmeval-suite/2', not 'wmeval-suite/1'"),
        ({"content_hash": "0" * 64}, "the content hash is not that of its list"),
        ({"files": 3}, "damaged"),
        ({"cases": ["../../etc"]}, "is no name of a file or case"),
        ({"files": {"../x": {"sha256": "0", "bytes": 1}}}, "is no name of a file or case"),
        ({"cases": None}, "damaged"),
    ],
)
def test_a_foreign_index_is_refused(suite, change, message):
    index = suite.path / "suite.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), **change}))
    with pytest.raises(UserError, match=message):
        read_suite(suite.path)


@given(data=st.binary(max_size=300))
def test_any_bytes_for_an_index_are_one_clear_error(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("x")
    (folder / "suite.json").write_bytes(data)
    with pytest.raises(UserError, match=r"suite\.json"):
        read_suite(folder)


@pytest.mark.parametrize(
    ("cases", "kwargs", "message"),
    [
        ((), {}, "at least one case"),
        ((CASES[0], CASES[0]), {}, "two cases are called"),
        (CASES, {"fps": (24, 24)}, "rates are > 0 and differ"),
        (CASES, {"fps": (-1,)}, "rates are > 0 and differ"),
        (CASES[:1], {}, "finished suite of other cases"),
        ((*CASES, case("more")), {}, "finished suite of other cases"),
        ((CASES[0], case("pull", -0.4, scene_seed=3)), {}, "holds another case of this name"),
        (CASES, {"fps": (30,)}, "holds other frame rates"),
    ],
)
def test_a_suite_is_not_built_over_another(suite, cases, kwargs, message):
    with pytest.raises(UserError, match=message):
        build_suite(cases, suite.path, **kwargs)
    assert read_suite(suite.path).content_hash == suite.content_hash


def test_asking_for_what_is_not_there(built, tmp_path):
    with pytest.raises(UserError, match="no case 'other'; it has BeamDomino-push"):
        built.case("other")
    with pytest.raises(UserError, match=r"no reference frames at 25 fps \(cached: 24, 60\)"):
        built.case(CASES[0].case_id).reference(F(25))
    with pytest.raises(UserError, match="no suite"):
        read_suite(tmp_path)


def test_plan_cards_become_cases():
    cases = cases_of("BeamDomino", ("canonical", "glancing"), range(2), view="static")
    assert [c.case_id for c in cases] == [
        "BeamDomino-canonical-s000-static",
        "BeamDomino-canonical-s001-static",
        "BeamDomino-glancing-s000-static",
        "BeamDomino-glancing-s001-static",
    ]


@given(st.dictionaries(st.text("abc/.", min_size=1), st.text("0123"), max_size=4))
def test_the_content_hash_does_not_depend_on_order(files):
    assert content_hash(files) == content_hash(dict(reversed(files.items())))


# --- export and check ---------------------------------------------------------------------------

CARD = {
    "name": "m",
    "fps": 24,
    "frames_per_action": 4,
    "width": 32,
    "height": 32,
    "context_length": 2,
}
KEYS = ModelSpec(**CARD, paradigm="keyboard", actuates=("camera",))
BODY = ModelSpec(**CARD)


def clip_of(folder, case_id, generation, count=13, size=(32, 32), fps=24, seed=True):
    frames = np.zeros((count, size[1], size[0], 3), np.uint8)
    if seed:
        frames[:] = read_png(folder / case_id / "context" / "001.png") if size == (32, 32) else 0
    write_mp4(folder / case_id / f"{generation}.mp4", frames, fps)


def test_native_controls_of_a_keyboard_model(built, tmp_path):
    done = export_cases(built, KEYS, tmp_path / "out", generations=2)
    assert done.exported == {c.case_id: 13 for c in CASES}
    # Its keys move the viewer: scored on obedience, not on causality.
    assert set(done.skipped) == {(c.case_id, "causality") for c in CASES}
    folder = tmp_path / "out" / CASES[0].case_id
    controls = json.loads((folder / "controls.json").read_text())
    # 0.3 s of full force: blocks of 1/6 s, of which the second holds it for 8 of 10 actions.
    assert controls["controls"] == [
        {"held": ["W"], "pressed": []},
        {"held": ["W"], "pressed": []},
        {"held": [], "pressed": []},
    ]
    assert controls["holds"] == [{"key": "W", "start": "0", "duration": "1/3"}]
    about = json.loads((folder / "case.json").read_text())
    assert about["prompt"] == "Größe: the ball rolls."
    assert (about["frames"], about["fps"], about["seeds"]) == (13, "24", [0, 1])
    seed = read_png(folder / "context" / "001.png")
    assert seed.shape == (32, 32, 3)
    assert np.array_equal(seed, read_png(folder / "context" / "000.png"))
    # 64 x 48 px became 32 x 32: K follows each axis by itself.
    K = built.case(CASES[0].case_id).K
    assert np.allclose(about["intrinsics"], np.diag([32 / 64, 32 / 48, 1]) @ K)


def test_native_controls_of_a_continuous_model(built, tmp_path):
    export_cases(built, BODY, tmp_path / "out")
    controls = json.loads((tmp_path / "out" / CASES[1].case_id / "controls.json").read_text())
    assert channels_of("BeamDomino").names[0] == "force_z"
    assert np.allclose(controls["controls"], [[-0.5, 0], [-0.4, 0], [0, 0]])
    assert "holds" not in controls


def test_a_model_without_a_control_gets_no_case(built, tmp_path):
    done = export_cases(built, ModelSpec(**CARD, paradigm="camera"), tmp_path / "out")
    assert done.exported == {}
    assert all("only camera control" in r for reasons in done.ineligible.values() for r in reasons)
    assert set(done.ineligible) == {c.case_id for c in CASES}


def test_camera_poses_of_a_regime_lead_from_block_edge_to_block_edge(tmp_path):
    cases = cases_of("MirrorRollingBall", ["perturb_left"], [0], width=32, height=32, max_steps=120)
    assert [c.view for c in cases] == ["follow"]
    suite = build_suite(cases, tmp_path / "suite", layers=("rgb",))
    camera = ModelSpec(**CARD, paradigm="camera")
    done = export_cases(suite, camera, tmp_path / "out")
    assert done.exported == {cases[0].case_id: 49}
    text = (tmp_path / "out" / cases[0].case_id / "controls.json").read_text()
    about = json.loads((tmp_path / "out" / cases[0].case_id / "case.json").read_text())
    assert [leg["name"] for leg in about["camera_motion"]["legs"]] == ["out", "in"]
    log = suite.case(cases[0].case_id).reference().log
    path = log.cameras.T_world_camera[:, log.cameras.camera("follow")]
    pose = path[0]
    for b, control in enumerate(json.loads(text)["controls"]):
        pose = pose @ np.array(control)
        np.testing.assert_allclose(pose, path[40 * (b + 1)], atol=1e-9)
    turned = np.degrees(np.arccos(path[0][:2, 0] @ pose[:2, 0]))
    assert turned == pytest.approx(36.0, abs=1e-3)
    body = export_cases(suite, BODY, tmp_path / "other")
    assert "no camera control" in next(iter(body.ineligible.values()))[0]


def test_what_comes_back_is_checked_clip_by_clip(built, tmp_path):
    out = tmp_path / "out"
    export_cases(built, BODY, out, generations=4)
    a, b = (c.case_id for c in CASES)
    assert check_cases(out).missing == tuple(f"{c}/{g}.mp4" for c in (a, b) for g in range(4))
    for g in range(4):
        clip_of(out, a, g)
    clip_of(out, b, 0, count=12)
    clip_of(out, b, 1, size=(64, 32))
    clip_of(out, b, 2, fps=25)
    (out / b / "3.mp4").write_bytes((out / a / "3.mp4").read_bytes()[:400])
    (out / a / "7.mp4").write_bytes(b"")
    found = check_cases(out)
    assert (found.expected, found.good, found.complete) == (8, 4, False)
    assert found.extra == (f"{a}/7.mp4",)
    assert "12 frames, expected 13" in found.wrong[f"{b}/0.mp4"]
    assert "64x32 px, expected 32x32" in found.wrong[f"{b}/1.mp4"]
    assert "25 frames/s, expected 24" in found.wrong[f"{b}/2.mp4"]
    assert "3.mp4" in found.wrong[f"{b}/3.mp4"]
    assert found.doubtful == {}
    # A plain picture of the seed frame's own mean colour is near it in every pixel's value.
    mean = read_png(out / a / "context" / "001.png").reshape(-1, 3).mean(axis=0)
    write_mp4(out / a / "0.mp4", np.full((13, 32, 32, 3), mean.astype(np.uint8)), 24)
    found = check_cases(out)
    assert list(found.doubtful) == [f"{a}/0.mp4"]
    assert "frame 0 is not like the seed frame" in found.doubtful[f"{a}/0.mp4"]
    assert (found.good, found.complete) == (3, False)  # what is doubted is not right


def test_honest_copies_of_a_seed_frame_are_like_it_and_others_are_not(tmp_path):
    with case().model_copy(update={"width": 320, "height": 176}).open() as env:
        seed = env.draw(("rgb",))["rgb"]
        other = env.draw(("rgb",), view="top")["rgb"]
    for crf in (18, 28, 35):
        write_mp4(tmp_path / "a.mp4", [seed] * 3, 24, crf=crf)
        assert likeness(read_mp4(tmp_path / "a.mp4")[0][0], seed) > SEED_FRAME_LIKENESS + 0.05
    columns = np.broadcast_to(seed.mean(axis=1, keepdims=True), seed.shape).astype(np.uint8)
    for false in (other, seed[:, ::-1], seed[:, :, ::-1], columns, np.full_like(seed, 128)):
        assert likeness(false, seed) < SEED_FRAME_LIKENESS


def test_the_clips_play_as_a_candidate(built, tmp_path):
    out = tmp_path / "out"
    export_cases(built, BODY, out, generations=2)
    frames = np.zeros((13, 32, 32, 3), np.uint8)
    frames[:] = (np.arange(13) * 15)[:, None, None, None]
    write_mp4(out / CASES[0].case_id / "1.mp4", frames, 24)
    candidate = parse_candidate(f"video:{out}")
    entry = built.case(CASES[0].case_id)
    context = resized_context(entry.seed_frame(), entry.K, CASES[0].plan, BODY, TA)
    adapter = make_adapter(BODY, channels_of("BeamDomino"), control_period=TA)
    actions = entry.reference().actions
    model = candidate(CASES[0], generation=1)
    clip = drive(model, adapter, actions, context)
    assert np.abs(clip.frames[1:, 16, 16, 0].astype(int) - np.arange(1, 13) * 15).max() <= 3
    assert clip.times == tuple(F(j, 24) for j in range(13))
    with pytest.raises(ModelError, match=r"model 'm': .*0.mp4: there is no such video file"):
        drive(candidate(CASES[0], generation=0), adapter, actions, context)
    write_mp4(out / CASES[0].case_id / "0.mp4", frames[:5], 24)
    with pytest.raises(ModelError, match="5 frames, expected 13"):
        drive(candidate(CASES[0], generation=0), adapter, actions, context)


def test_an_export_is_not_overwritten_unasked(built, tmp_path):
    export_cases(built, BODY, tmp_path / "out", generations=1)
    with pytest.raises(UserError, match="exists; pass overwrite"):
        export_cases(built, BODY, tmp_path / "out")
    clip_of(tmp_path / "out", CASES[0].case_id, 0)
    export_cases(built, BODY, tmp_path / "out", overwrite=True)
    assert check_cases(tmp_path / "out").good == 0
    (tmp_path / "out" / "thesis.tex").write_text("")
    with pytest.raises(UserError, match=r"wmeval did not write here \(thesis.tex\)"):
        export_cases(built, BODY, tmp_path / "out", overwrite=True)
    with (
        claim(tmp_path / "new"),
        pytest.raises(UserError, match="another run is writing here"),
    ):
        export_cases(built, BODY, tmp_path / "new")
    with pytest.raises(UserError, match="model card"):
        check_cases(tmp_path)
    (tmp_path / "out" / "cases.json").write_text('{"cases": 3}')
    with pytest.raises(UserError, match="not written by `wmeval cases export`"):
        check_cases(tmp_path / "out")


def test_a_plan_too_short_for_one_chunk_is_refused(built, tmp_path):
    with pytest.raises(UserError, match="do not cover"):
        export_cases(built, ModelSpec(**CARD, chunk=10), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pictures_round_trip(tmp_path):
    picture = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    write_png(tmp_path / "a.png", picture)
    assert np.array_equal(read_png(tmp_path / "a.png"), picture)
    assert likeness(picture, picture) == pytest.approx(1)
    assert likeness(picture, 255 - picture) == pytest.approx(-1)
    for name, data in (("b.png", b""), ("c.png", b"no picture")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=f"{name}: not a picture"):
            read_png(tmp_path / name)
