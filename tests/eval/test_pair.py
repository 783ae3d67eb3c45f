"""Pairing on the real world and the real renderer, at a small size."""

import fcntl
import json
import math
import shutil
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml

from wmeval.clock import CandidateClock
from wmeval.datasets.validate import validate
from wmeval.datasets.video import read_mp4, write_mp4
from wmeval.envs import environment_row
from wmeval.errors import UserError
from wmeval.eval import pair, plots
from wmeval.eval.folders import results_files
from wmeval.eval.metrics import METRICS, NEEDS_WEIGHTS
from wmeval.eval.pair import PairConfig, run_pair, run_pairs
from wmeval.eval.perception import classical
from wmeval.eval.report import joint_table, latex, terminal_table
from wmeval.eval.results import read_results
from wmeval.eval.wording import headlines, lines, main_rows
from wmeval.jobs.atomic import claim

pytestmark = pytest.mark.gl

BASE = {"env_id": "BeamDomino", "plan": "canonical", "width": 160, "height": 96}
SHORT = {**BASE, "env_kwargs": {"max_steps": 135}}  # 2.25 s: nothing but the way to the platform
TINY = {**BASE, "env_kwargs": {"max_steps": 90}}
ROLLER = {"env_id": "BallRoller", "plan": "forward"}
STRIDED = "twin:fps=8,stride=5,delay=0.1"
CARD = ("name", "fps", "frames_per_action", "width", "height", "paradigm")
BALL = "floor_ball"
EXACT_ZERO = ("fde", "dtw", "dtw_sum", "rmse", "momentum_rmse", "energy_rmse", "error_rate")


NAMES = ("twin:fps=12", "twin:fps=12,gain=0.8", "frozen:fps=12")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, request):
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    return shared / "pair"


@pytest.fixture(scope="module")
def done(folder):
    # Test processes share the runs: the second one finds them finished.
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return run_pairs([PairConfig(candidate=c, **BASE) for c in NAMES], folder)


@pytest.fixture(scope="module")
def twin(done):
    return done[0]


@pytest.fixture(scope="module")
def wrong(done):
    return done[1]


@pytest.fixture(scope="module")
def frozen(done):
    return done[2]


def value(results, metric, subject=BALL, source="oracle"):
    row = results.row(metric, subject, source)
    assert row.status == "measured", row.reason
    return row.value


def test_the_identity_twin_has_no_error_at_all(twin):
    for metric in EXACT_ZERO:
        assert value(twin, metric) == 0
        assert twin.row(metric, BALL, "oracle").identity == 0
    assert value(twin, "exact_match") == 100
    assert value(twin, "rel_epe_dyn", "picture") == 0
    assert value(twin, "cos_sim_dyn", "picture") == pytest.approx(1, abs=1e-6)
    assert value(twin, "csr", "chain") == 100
    assert value(twin, "amcl", "chain") == 4
    assert value(twin, "stage_delay", "chain") == 0


def test_the_twins_video_scores_exactly_the_pixel_floor(twin):
    # The same pictures through the same codec and the same perception.
    for metric, subject in (("fde", BALL), ("rmse", BALL), ("rel_epe_dyn", "picture")):
        row = twin.row(metric, subject, "classical")
        assert row.value == row.pixel_floor
    assert 0 < value(twin, "fde", source="classical") < 0.3
    assert twin.row("rmse", BALL, "classical").coverage > 0.95


def test_a_weaker_push_is_seen_by_records_and_by_pixels_alike(twin, wrong):
    for metric in (*EXACT_ZERO, "robust_error"):
        assert value(wrong, metric) > value(twin, metric)
    for metric in ("fde", "rmse", "dtw"):
        seen, known = value(wrong, metric, source="classical"), value(wrong, metric)
        assert seen > wrong.row(metric, BALL, "classical").pixel_floor
        assert seen == pytest.approx(known, rel=0.35)
    assert value(wrong, "rel_epe_dyn", "picture") > 0.1
    assert value(wrong, "stage_delay", "chain") > 0.02


def test_a_frozen_picture_fails_the_chain_and_moves_nothing(frozen):
    assert value(frozen, "csr", "chain") == 0
    assert value(frozen, "icra", "chain") == 0
    assert value(frozen, "rf", "chain") == 4
    assert value(frozen, "rel_epe_dyn", "picture") == pytest.approx(1)
    assert value(frozen, "cos_sim_dyn", "picture") == pytest.approx(0, abs=1e-9)
    assert value(frozen, "fde") > 5
    # Pixels tell that nothing moves, and so that nothing happened.
    assert value(frozen, "csr", "chain", "classical") == 0
    assert frozen.row("stage_delay", "chain", "oracle").status == "not_measured"
    assert frozen.row("csr", "chain", "oracle").p_reference == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("env_id", "plan", "subject", "metrics", "learned", "massless"),
    [
        ("SunRisesAndSets", "sunset", "light",
         ("sun_direction_error", "sun_color_error", "sky_color_error"), 6, ()),
        ("LiquidContainer", "step_hold", "liquid",
         ("surface_normal_error", "modal_amplitude_rmse"), 5, ("momentum_rmse", "energy_rmse")),
    ],
)  # fmt: skip
def test_light_and_liquid_tell_twin_from_frozen(
    env_id, plan, subject, metrics, learned, massless, tmp_path
):
    def results(candidate):
        config = PairConfig(
            candidate=candidate, env_id=env_id, plan=plan, width=96, height=64, scene_seeds=(0,),
            env_kwargs={"max_steps": 150},
        )  # fmt: skip
        return run_pair(config, tmp_path / candidate.partition(":")[0])

    twin, frozen = results("twin:fps=4"), results("frozen:fps=4")
    for metric in metrics:
        assert value(twin, metric, subject) == 0
        assert value(frozen, metric, subject) > (0.001 if metric.startswith("modal") else 1)
        assert frozen.row(metric, subject, "oracle") in main_rows(frozen)
    assert len([r for r in frozen.rows if r.status == "not_run"]) == learned
    for metric in massless:
        row = frozen.row(metric, "bottle", "oracle")
        assert (row.status, row.reason) == ("not_measured", "the body has no mass")


def test_a_coarser_clock_reduces_only_where_actions_change_within_a_block():
    actions = np.repeat([[1.0], [0.0]], [180, 300], axis=0)
    period = Fraction(1, 60)
    assert pair.reduces_nothing(CandidateClock(Fraction(12), 1), period, actions)
    assert pair.reduces_nothing(CandidateClock(Fraction(24), 2), period, actions)
    assert not pair.reduces_nothing(CandidateClock(Fraction(24), 5), period, actions)
    assert not pair.reduces_nothing(CandidateClock(Fraction(16), 1), period, actions[1:])


def test_missing_numbers_carry_their_reasons(twin):
    chain = twin.row("csr", "chain", "classical")
    assert (chain.status, chain.value) == ("not_measured", None)
    assert "pixels" in chain.reason
    lpips = twin.row("clpips", "picture", "learned")
    assert (lpips.status, lpips.reason) == ("not_run", "weights LPIPS-Alex")
    assert twin.row("fde", BALL, "oracle").std is None  # one generation: N/A
    assert twin.row("fde", BALL, "oracle").interval is None  # one scene
    for row in twin.rows:
        assert (row.value is None) == (row.status != "measured")
        if row.value is not None:
            card = METRICS[row.metric]
            assert card.low - 1e-6 <= row.value <= card.high + 1e-6
            assert math.isfinite(row.value)


def test_results_are_read_back_as_written(twin, folder):
    path = folder / "twin_fps=12"
    assert read_results(path) == twin
    assert (path / "results.json").read_text() == twin.to_json()
    case = twin.cases[0]
    for name in ("reference.mp4", "reference.h5", "candidate.mp4"):
        assert (path / case.files[name]).is_file()
    assert len(case.times) == 97
    assert case.shape == case.candidate_shape == "canonical"


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A finished short run, not to be written to."""
    out = tmp_path_factory.mktemp("short") / "out"
    run_pair(PairConfig(candidate=STRIDED, **TINY), out)
    assert validate(out) == []
    return out


def files_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def removed(path):
    path.unlink()


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def another_digit(path):
    path.write_text(path.read_text().replace('"coverage": 1.0', '"coverage": 0.5', 1))


@pytest.mark.parametrize(
    ("name", "damage", "made_again"),
    [
        ("g00/SHA256SUMS", removed, True),  # as a kill leaves it
        ("g00/candidate.mp4", flipped, True),
        ("g00/case.json", another_digit, True),
        ("reference/reference.h5", flipped, False),
    ],
)
def test_what_is_damaged_is_found_and_made_again_with_the_same_bytes(
    name, damage, made_again, short, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    shutil.copytree(short, out)
    damage(next(out.rglob(name)))
    (out / "results.json").unlink()
    if damage is not removed:
        assert any(name in problem for problem in validate(out))
    driven, lines = [], []
    compare = pair.Reference.compare

    def counted(self, *args):
        driven.append(args)
        return compare(self, *args)

    monkeypatch.setattr(pair.Reference, "compare", counted)
    run_pair(PairConfig(candidate=STRIDED, **TINY), out, progress=lines.append)
    assert len(driven) == made_again  # a reference is made again by itself
    assert files_of(out) == files_of(short)
    assert ("made again" in " ".join(lines)) == ("SUMS" not in name)


def test_a_changed_clip_is_scored_again(short, tmp_path):
    case = read_results(short).cases[0]
    clip = tmp_path / "made" / case.case_id / "0.mp4"
    clip.parent.mkdir(parents=True)
    shutil.copy(short / case.files["candidate.mp4"], clip)
    card = {k: case.model[k] for k in CARD}
    (tmp_path / "made" / "model.yaml").write_text(yaml.safe_dump({**card, "mode": "clip"}))
    config = PairConfig(candidate=f"video:{tmp_path / 'made'}", **TINY)
    first = run_pair(config, tmp_path / "out")
    frames = read_mp4(clip)[0]
    write_mp4(clip, iter(np.repeat(frames[:1], len(frames), axis=0)), Fraction(8))
    lines = []
    second = run_pair(config, tmp_path / "out", progress=lines.append)
    assert "the candidate has changed" in " ".join(lines)
    assert second.cases[0].fingerprint != first.cases[0].fingerprint
    before, after = (value(r, "rmse", source="classical") for r in (first, second))
    assert after > 2 * before


def test_pictures_equal_to_the_references_are_looked_at_once(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(
        "wmeval.eval.reference.classical",
        lambda *args, **options: looks.append(1) or classical(*args, **options),
    )
    results = run_pair(PairConfig(candidate="twin:fps=8", **TINY), tmp_path / "out")
    row = results.row("fde", BALL, "classical")
    assert (len(looks), row.value) == (1, row.pixel_floor)


def test_a_second_run_into_the_same_folder_is_refused(tmp_path):
    with claim(tmp_path / "out"), pytest.raises(UserError, match="another run"):
        run_pair(PairConfig(candidate="frozen:fps=8", **TINY), tmp_path / "out")


def test_workers_say_what_they_do_as_they_do_it(tmp_path):
    config = {**BASE, "env_kwargs": {"max_steps": 30}, "width": 96, "height": 64}
    lines = []
    run_pair(
        PairConfig(candidate="frozen:fps=4", **config), tmp_path / "out", workers=1,
        progress=lines.append,
    )  # fmt: skip
    assert lines[:3] == [
        "1 scene x 1 candidate, 1 worker",
        "seed 0: reference, 4 fps",
        "seed 0, generation 0: frozen",
    ]
    assert any(line.startswith("seed 0: done in") for line in lines)


def test_a_finished_run_is_not_driven_again(folder, frozen, monkeypatch):
    def refuse(*_):
        raise AssertionError("driven again")

    monkeypatch.setattr(pair.Reference, "record", refuse)
    config = PairConfig(candidate="frozen:fps=12", **BASE)
    assert run_pair(config, folder / "frozen_fps=12") == frozen


def test_a_folder_of_other_settings_is_refused(folder, frozen, tmp_path):
    config = PairConfig(candidate="frozen:fps=12", **{**BASE, "view": "top"})
    with pytest.raises(UserError, match="view is 'static' there and 'top' now"):
        run_pair(config, folder / "frozen_fps=12")
    (tmp_path / "thing").write_text("x")
    with pytest.raises(UserError, match="not empty"):
        run_pair(PairConfig(candidate="frozen", **BASE), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env_id": "NoSuch"}, "unknown environment"),
        ({"plan": "nowhere"}, "no plan 'nowhere'"),
        ({"candidate": "dream"}, "unknown candidate"),
        ({**ROLLER, "candidate": "twin:restitution=5"}, "use a factor of at most"),
        ({"candidate": "twin:stride=1000"}, "use a longer plan or less stride"),
        ({"candidate": "video:nodir"}, "no folder nodir"),
    ],
)
def test_what_cannot_be_compared_leaves_nothing_behind(change, message, tmp_path):
    with pytest.raises(UserError, match=message):
        run_pairs(
            [
                PairConfig(candidate="frozen:fps=4", **BASE),
                PairConfig(**{**BASE, "candidate": "frozen", **change}),
            ],
            tmp_path / "out",
        )
    assert list(tmp_path.iterdir()) == []


def test_a_clip_missing_for_a_later_scene_is_told_at_once(short, tmp_path):
    case = read_results(short).cases[0]
    clip = tmp_path / "made" / case.case_id / "0.mp4"
    clip.parent.mkdir(parents=True)
    shutil.copy(short / case.files["candidate.mp4"], clip)
    card = {k: case.model[k] for k in CARD}
    (tmp_path / "made" / "model.yaml").write_text(yaml.safe_dump({**card, "mode": "clip"}))
    config = PairConfig(candidate=f"video:{tmp_path / 'made'}", scene_seeds=(0, 1), **TINY)
    with pytest.raises(UserError, match=r"1 of 2 clips are missing, .*s001-static"):
        run_pair(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_clip_made_elsewhere_scores_as_the_same_pixels_made_here(folder, wrong, tmp_path):
    case = wrong.cases[0]
    clip = tmp_path / "made" / case.case_id / "0.mp4"
    clip.parent.mkdir(parents=True)
    shutil.copy(folder / "twin_fps=12_gain=0.8" / case.files["candidate.mp4"], clip)
    card = {k: wrong.model[k] for k in CARD if k != "frames_per_action"}
    (tmp_path / "made" / "model.yaml").write_text(yaml.safe_dump({**card, "mode": "clip"}))
    config = PairConfig(candidate=f"video:{tmp_path / 'made'}", **BASE)
    video = run_pair(config, tmp_path / "out")
    assert {r.source for r in video.rows} == {"classical", "learned"}
    for row in video.rows:
        if row.status == "measured":
            twin = wrong.row(row.metric, row.subject, "classical")
            assert row.value == twin.value, row.metric
            assert row.pixel_floor == twin.pixel_floor
    chain = video.row("csr", "chain", "classical")
    assert chain.status == "not_measured"
    assert video.cases[0].candidate_events is None


def test_an_ineligible_model_is_not_driven(tmp_path):
    source = tmp_path / "talker.py"
    source.write_text(
        "from wmeval.envs.model import ModelSpec\n"
        "class Talker:\n"
        "    spec = ModelSpec(name='talker', fps=4, width=64, height=48, paradigm='language')\n"
        "    def reset(self, *_): raise AssertionError('driven')\n"
        "    def step(self, controls): raise AssertionError('driven')\n"
        "    def close(self): pass\n"
    )
    config = PairConfig(candidate=f"python:{source}:Talker", **BASE)
    results = run_pair(config, tmp_path / "out")
    assert {r.status for r in results.rows} == {"ineligible"}
    for row in results.rows:
        assert row.value is None
        assert "prompt alone" in row.reason
        assert row.source in ("none", "learned")
    page = Page((tmp_path / "out" / "report.html").read_text())
    assert "ineligible" in " ".join(page.text)


def test_scenes_and_generations_are_kept_apart(tmp_path):
    short = {"env_kwargs": {"max_steps": 90}, "scene_seeds": (0, 1), "generations": 2}
    options = {**BASE, **short, "grid": "reference"}
    config = PairConfig(candidate="frozen:fps=4,width=96,height=64", **options)
    results = run_pair(config, tmp_path / "out")
    row = results.row("rmse", BALL, "oracle")
    assert (row.scenes, row.generations, row.cases) == (2, 4, 4)
    assert {s: len(v) for s, v in row.samples.items()} == {"0": 2, "1": 2}
    assert row.std == 0  # over generations, which are alike; the scenes differ
    assert row.samples["0"][0] != row.samples["1"][0]
    assert row.interval[0] < row.value < row.interval[1]
    # On the reference's grid: a path every control period, not every frame.
    measured = next(x for x in results.cases[0].measurements if x.key == row.key)
    assert measured.n == 91
    assert results.row("csr", "chain", "oracle").value == 0
    # More generations of the same run are added, the finished ones stay.
    more = run_pair(config.model_copy(update={"generations": 3}), tmp_path / "out")
    assert more.row("rmse", BALL, "oracle").generations == 6
    assert more.cases[:2] == results.cases[:2]


def test_a_moving_view_gives_no_metres(tmp_path):
    options = {**BASE, **ROLLER, "view": "follow"}
    config = PairConfig(candidate="frozen:fps=4,width=96,height=64", **options)
    results = run_pair(config, tmp_path / "out")
    row = results.row("fde", "player", "classical")
    assert (row.status, row.reason) == ("not_measured", "camera unknown")
    assert results.row("fde", "player", "oracle").value > 1
    assert "csr" not in {r.metric for r in results.rows}  # no chain is asked of this scene


# --- the report ---------------------------------------------------------------------------------


class Page(HTMLParser):
    """Checks nesting and collects what the page shows."""

    VOID = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.metrics, self.images, self.text = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        self.metrics += attrs.get("data-metrics", "").split()
        if tag == "img":
            assert attrs["alt"]
            self.images.append(attrs["src"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_well_formed_self_contained_and_complete(folder, wrong):
    text = (folder / "twin_fps=12_gain=0.8" / "report.html").read_text()
    page = Page(text)
    assert sorted(page.metrics) == sorted(r.metric for r in wrong.rows)
    served = environment_row(wrong.config["env_id"]).dimensions
    learned = {n for n, row in NEEDS_WEIGHTS.items() if row.dimension in served}
    assert {"clpips", "rel_epe_raft"} <= learned
    asked = {n for n, row in METRICS.items() if row.dimension not in ("fluid", "lighting")}
    assert set(page.metrics) == {*asked, *learned}
    assert len(page.images) == 2 * 6 + 2
    assert all(src.startswith("data:image/") for src in page.images)
    assert "http://" not in text
    assert "https://" not in text
    words = " ".join(page.text)
    assert "not comparable with the papers' tables" in words
    for headline in headlines(wrong):
        for sentence, _, _ in headline.sentences:
            assert sentence in words


def test_film_strips_are_cut_to_where_something_happens():
    rng = np.random.default_rng(0)
    clip = np.repeat(rng.integers(90, 110, (1, 100, 200, 3), np.uint8), 9, axis=0)
    clip[4, 40:60, 120:150] = 255
    clip[8, 50:70, 100:130] = 255
    rows, cols = plots._action(clip)
    assert rows.start in range(25, 32)
    assert rows.stop in range(78, 86)
    assert cols.start in range(85, 92)
    assert cols.stop in range(158, 165)
    still = np.repeat(clip[:1], 9, axis=0)
    assert plots._action(still) == (slice(None), slice(None))
    clip[8] = 255  # the camera moved
    assert clip[0][plots._action(clip)].shape == (100, 200, 3)


def test_several_candidates_share_references_and_a_page(tmp_path):
    names = ("frozen:fps=8,stride=2", "frozen:fps=8")
    configs = [PairConfig(candidate=c, **SHORT) for c in names]
    done = run_pairs(configs, tmp_path / "all")
    # Sharing the reference changes no bit of what a run of its own finds.
    assert done[1] == run_pair(configs[1], tmp_path / "alone")
    assert done[0].suite_sha256 == done[1].suite_sha256
    tmp_path = tmp_path / "all"
    folders = [tmp_path / "frozen_fps=8_stride=2", tmp_path / "frozen_fps=8"]
    for results, place in zip(done, folders, strict=True):
        assert read_results(place) == results
        assert (place / results.cases[0].files["reference.h5"]).is_file()
    # Tables show the candidates as they were given, not in the order of their names.
    assert results_files(tmp_path) == [f / "results.json" for f in folders]
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert page.images
    assert set(page.metrics) <= set(METRICS)
    assert 'href="frozen_fps=8_stride=2/report.html"' in text
    assert "breaks the causal chain at rolling" in " ".join(page.text)
    assert joint_table(done).row_count == len(page.metrics)
    with pytest.raises(UserError, match="given twice"):
        run_pairs([configs[0], configs[0]], tmp_path / "other")


def test_a_coarser_control_costs_by_itself(tmp_path):
    # Released at 2.25 s in the plan's middle: a block of 1.25 s smears the end of the push.
    plan = {**BASE, "env_kwargs": {"max_steps": 240}}
    results = run_pair(PairConfig(candidate="twin:fps=4,stride=5", **plan), tmp_path / "out")
    row = results.row("rmse", BALL, "oracle")
    assert row.value == row.reduction_floor > 0
    assert row.identity == 0


def test_every_dimension_has_a_sentence(wrong):
    by_dimension = {h.dimension: h for h in headlines(wrong)}
    assert set(by_dimension) == {"kinematics", "mechanics", "controllability", "causality"}
    assert by_dimension["kinematics"].tone == "bad"
    assert "ends" in by_dimension["kinematics"].sentences[0][0]


def test_the_terminal_table_holds_the_main_rows(wrong):
    from rich.console import Console

    table = terminal_table(wrong)
    assert table.row_count == len(lines(main_rows(wrong)))
    console = Console(width=220, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    assert "Final displacement" in console.export_text()
    assert terminal_table(wrong, every=True).row_count > table.row_count


def test_the_latex_table_marks_what_cannot_be_told_apart(twin, wrong, frozen):
    text = latex([twin, wrong, frozen])
    assert text.count(r"\begin{tabular}{llrrr}") == 1
    line = next(x for x in text.splitlines() if x.startswith("Final displacement"))
    assert line.count("&") == 4
    assert "dagger" not in text  # one scene, one generation: nothing is separable, said once
    assert text.count("too few repetitions to separate the candidates (1; it takes 4)") == 1
    assert r"\mathbf" not in line
    assert "_" not in line.replace(r"\_", "")
    assert "%" not in text.splitlines()[3].replace(r"\%", "")


def test_results_on_other_references_do_not_share_a_table(twin, frozen):
    other = frozen.model_copy(update={"suite_sha256": "0" * 64})
    with pytest.raises(UserError, match="other references"):
        latex([twin, other])
    with pytest.raises(UserError, match="at least one"):
        latex([])


def test_results_measured_otherwise_do_not_share_a_table(twin, frozen):
    other = frozen.model_copy(update={"config": {**frozen.config, "crf": 40}})
    with pytest.raises(UserError, match="crf 40"):
        latex([twin, other])
    with pytest.raises(UserError, match="one version"):
        latex([twin, frozen.model_copy(update={"wmeval": "0.0.1"})])


def test_foreign_and_damaged_results_are_refused(tmp_path, twin):
    with pytest.raises(UserError, match="no such file"):
        read_results(tmp_path)
    path = tmp_path / "results.json"
    path.write_text(twin.to_json()[:500])
    with pytest.raises(UserError, match="not a JSON file"):
        read_results(path)
    path.write_text("[1, 2]")
    with pytest.raises(UserError, match="not a wmeval-results"):
        read_results(path)
    document = json.loads(twin.to_json())
    document["rows"][0]["value"] = "much"
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"rows\.0\.value"):
        read_results(path)
