"""GAUGE's families as environments: rows, contract, configurations, drives, what results carry."""

import json
import math
import re
import warnings
from fractions import Fraction
from importlib.util import find_spec

import gymnasium as gym
import numpy as np
import pytest
from engine_worlds import engine_here
from gymnasium.utils.env_checker import check_env

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_profiles import drive_hash, read_measured
from wmeval.clock import exact
from wmeval.datasets.hdf5 import read_hdf5, write_hdf5
from wmeval.deformables import rest_shape
from wmeval.envs import ENVIRONMENTS, environment_class, environment_row, every_row, short_name
from wmeval.envs.base import Snapshot
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.configurations import NAMES, chained, engines_of, read_fitted, settings_of
from wmeval.envs.gauge.markers import followers, track_of
from wmeval.envs.gauge.rows import FAMILIES
from wmeval.envs.gauge.solver_rows import PUBLISHED
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.policies import ReplayPolicy
from wmeval.envs.record import record, remake
from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.records import StateLog
from wmeval.tables import DIMENSIONS, listing

ON_BULLET = tuple(i for i, row in FAMILIES.items() if "bullet" in row.engines)
STILL = np.zeros(0, np.float32)


def make(name, **kwargs):
    return environment_class(name)(**kwargs)


def played(steps, name, **kwargs):
    env = make(name, **kwargs)
    env.reset(seed=0)
    for _ in range(steps):
        env.step(np.zeros(len(env.channels), np.float32))
    return env


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", FAMILIES)
def test_a_row_says_what_its_card_says(env_id):
    row, cls = FAMILIES[env_id], environment_class(env_id)
    card = families()[cls.FAMILY]
    subtask = next(iter(card.subtasks))
    assert env_id == f"GAUGE/{card.env}-v0" == cls.ID
    assert row.engines == engines_of(card)
    assert row.max_steps == card.frames(subtask, card.materials[0]) - 1
    assert 1 / row.dt == settings_of(card, row.engines[0], PUBLISHED).hz
    env = cls(engine=row.engines[0])
    assert env.observation_space.shape == (row.observation,)
    assert env.max_steps == row.max_steps
    assert env.clock.dt == row.dt
    assert np.isfinite(env.observation_space.high).all()
    page = cls.__doc__
    for part in ("## Description", "## Observation space", "## Arguments", "## Reset options"):
        assert part in page
    for name in (*card.materials, *card.subtasks, *engines_of(card), "main", "static", "top"):
        assert f"`{name}`" in page
    assert card.notes[0].split("\n")[0] in page
    for body in card.bodies:
        assert f"| `{body}` |" in page
    for one in card.subtasks.values():
        told = [p for by_body in one.overrides.values() for p in by_body.values()]
        for drives in one.drives.values():
            assert all(f"`{d.profile}`: " in page for d in drives)
        assert all(f"restitution {p.restitution:g} |" in page for p in told)


def test_all_22_are_listed_found_and_registered():
    assert len(FAMILIES) == 22
    assert [environment_class(i).FAMILY for i in FAMILIES] == list(families())
    assert list(every_row()) == [*ENVIRONMENTS, *FAMILIES]
    assert {row[0] for row in listing("envs")[2]} == set(every_row())
    assert environment_row("SlopeSlider").id == "GAUGE/SlopeSlider-v0"
    names = [short_name(i) for i in every_row()]
    assert len(set(names)) == len(names)
    assert gym.spec("GAUGE/Funnel-v0").entry_point == "wmeval.envs.gauge.tasks:Funnel"


@pytest.mark.gl
@pytest.mark.parametrize(
    "env_id",
    # 118 bricks take as long as all the others.
    [pytest.param(i, marks=[pytest.mark.accept] if "Wall" in i or "Rope" in i else [])
     for i in ON_BULLET],
)  # fmt: skip
def test_gymnasiums_checker_has_no_complaint(env_id):
    env = gym.make(env_id, engine="bullet", render_mode="rgb_array", width=64, height=48)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


@pytest.mark.accept
def test_what_bends_begins_and_is_observed_on_newton():
    engine_here("newton")
    env = None
    for env_id in FAMILIES:
        if env_id in ON_BULLET:
            continue
        last = env
        env = make(short_name(env_id), engine="newton", solver={"solver": "vbd"})
        if last is not None:  # one worker serves all: the library takes seconds to start
            env._world = last._world
        seen, info = env.reset(seed=0)
        assert env.observation_space.contains(seen), env_id
        assert info["gauge"]["measured"], env_id
    env.close()


# --- what an engine does not have -----------------------------------------------------------------


def test_an_engine_without_the_physics_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"Funnel-v0 does not run on bullet: its textiles are not"):
        make("Funnel", engine="bullet")
    with pytest.raises(UserError, match=r"FoamBending-v0 .* needs? .*GPU.*newton or genesis"):
        make("FoamBending", engine="physx")
    with pytest.raises(UserError, match="its settings are not known here"):
        make("Pendulum", engine="carom")


TOSS_FIT = """
family: cube_toss
fitted_on: 5 of 9 tosses
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"engine": "bulet"},
            "^turntable: no engine 'bulet': choose from bullet, physx, newton, genesis$",
        ),
        ({"drive": 3}, r"Turntable-v0: drive = 3: give the name of a \.csv file, or 'action'$"),
        ({"config": 3}, r"^config = 3: give published-settings or tuned, or the name of"),
        ({"solver": "x"}, r"Turntable-v0: solver = 'x': give settings by name$"),
        ({"config": "absent.yaml"}, r"^absent\.yaml: No such file or directory$"),
        (
            {"config": "{}/toss.yaml"},
            r"toss\.yaml: its numbers are of cube_toss, not of turntable$",
        ),
        ({"config": "{}/cut.yaml"}, r"cut\.yaml: while parsing a flow node expected the node "),
        ({"drive": "{}/short.csv"}, r"short\.csv: line 2 of numbers has 1, five are wanted$"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(arguments, said, tmp_path):
    (tmp_path / "toss.yaml").write_text(TOSS_FIT)
    (tmp_path / "cut.yaml").write_text("a: [\n")
    (tmp_path / "short.csv").write_text("time,x,y,z,angle\n0,0,0,0,0\n1\n")
    given = {k: v.format(tmp_path) if isinstance(v, str) else v for k, v in arguments.items()}
    with pytest.raises(UserError, match=said) as caught:
        make("Turntable", **given).reset(seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["physx", "newton", "genesis"])
def test_an_engine_that_is_not_installed_says_how_to_get_it(engine, nothing_installed):
    name = "FoamStretching" if engine == "newton" else "Pendulum"
    if find_spec(installed.ENVIRONMENTS[engine].module) is not None:
        pytest.skip(f"{engine} is in this very interpreter")
    env = make(name, engine=engine)
    with pytest.raises(UserError, match=f"wmeval install {engine}"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"material": "glass"}, "unknown material 'glass': choose from wood, plastic, metal"),
        ({"subtask": "9"}, "unknown subtask '9': choose from 1, 2, 3"),
        ({"config": "fast"}, "no configuration 'fast': choose from published-settings, tuned"),
        ({"config": "none.yaml"}, "none.yaml"),
        ({"drive": "action"}, "nothing is led in this set-up"),
        (
            {"solver": {"iterationz": 3}},
            "bullet has no option 'iterationz'; known: .*, iterations, .*restitution_threshold",
        ),
        ({"solver": {"iterations": 0}}, "SlopeSlider-v0: solver: iterations = 0: "),
        ({"solver": {"restitution_threshold": "low"}}, "solver: restitution_threshold = 'low'"),
    ],
)
def test_wrong_arguments_are_one_line(kwargs, says):
    with pytest.raises(UserError, match=says) as caught:
        make("SlopeSlider", **kwargs).reset(seed=0)
    assert "\n" not in str(caught.value)


# --- configurations -------------------------------------------------------------------------------


def test_configurations_differ_and_are_told():
    published, tuned = (make("BouncingBall", engine="bullet", config=name) for name in NAMES)
    assert (1 / published.clock.dt, 1 / tuned.clock.dt) == (180, 1800)
    assert not published.solving.config.options
    _, info = published.reset(seed=0)
    told = info["gauge"]
    assert told["config"] == "published-settings"
    assert told["paper_versions"]["newton"] == "1.3.0"
    assert (told["family"], told["subtask"], told["material"]) == ("bouncing_ball", "1", "rubber")
    assert json.loads(json.dumps(told)) == told
    assert tuned.reset(seed=0)[1]["gauge"]["solver"] == "rigid bodies, split impulses"
    assert make("SlopeSlider", subtask=3).subtask == "3"
    own = make("BouncingBall", solver={"iterations": 7, "contact_erp": 0.1}, dt="1/240")
    own.reset(seed=0)
    assert own.world_spec.config.iterations == 7
    assert own.world_spec.config.options == {"contact_erp": 0.1}
    assert own.world_spec.clock.dt == Fraction(1, 240)


def test_only_tables_say_what_departs_and_engines_say_whether_they_have_ropes():
    """What an engine's published method cannot do is a row with a reason, on any engine."""
    departing = {
        (engine, card.id): settings_of(card, engine, PUBLISHED)
        for card in families().values()
        for engine in engines_of(card)
        if settings_of(card, engine, PUBLISHED).departs
    }
    assert {e for e, _ in departing} == {"bullet", "physx", "newton", "genesis"}
    for family in ("stick_stack", "cantilever_beam"):
        for engine, way in (("newton", "vbd"), ("genesis", "fem")):
            told = departing[engine, family]
            assert told.departs.startswith(f"{way}: ")
            assert told.solver.startswith(way)
            assert told.config.options.get("volume", "fem") == "fem"
    assert departing["genesis", "foam_bending"].config.options["volume"] == "mpm"
    assert [e for e in ("bullet", "physx", "newton", "genesis", "isaac") if chained(e)] == [
        "genesis", "isaac"
    ]  # fmt: skip


def test_fitted_numbers_come_from_a_file(tmp_path):
    path = tmp_path / "fit.yaml"
    path.write_text(
        "family: slope_slider\nfitted_on: trials 1 to 10 of 20\nbase: published-settings\n"
        "hz: 360\niterations: 80\nproperties: {cube: {friction: 0.2}}\n"
    )
    assert read_fitted(path).fitted_on == "trials 1 to 10 of 20"
    env = make("SlopeSlider", engine="bullet", subtask="2", config=str(path))
    _, info = env.reset(seed=0)
    assert info["gauge"]["config"] == "fitted"
    assert info["gauge"]["fitted_on"] == "trials 1 to 10 of 20"
    assert (env.clock.dt, env.world_spec.config.iterations) == (env.solving.dt, 80)
    cube = next(b for b in env.scene.bodies if b.name == "cube")
    assert cube.friction == 0.2
    with pytest.raises(UserError, match="its numbers are of slope_slider, not of turntable"):
        settings_of(families()["turntable"], "bullet", str(path))
    path.write_text("family: slope_slider\n")
    with pytest.raises(UserError, match=r"fit\.yaml: fitted_on"):
        settings_of(families()["slope_slider"], "bullet", str(path))


@pytest.mark.parametrize(
    ("given", "substeps"),
    [({"dt": 1 / 720}, 24), ({"dt": "1/720"}, 24), ({"control_period": 1 / 60}, 3),
     ({"dt": 1 / 1800, "control_period": 1 / 90}, 20)],
)  # fmt: skip
def test_times_may_be_floats(given, substeps):
    assert make("SlopeSlider", engine="bullet", **given).clock.substeps == substeps


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ("cubee: {friction: 0.2}", "slope_slider has no body 'cubee': choose from cube"),
        ("board: {friction: 0.2}", "nothing depends on numbers of slope_slider's board"),
        ("cube: {frixion: 0.2}", "slope_slider's cube takes no 'frixion': choose from mass, fri"),
        ("cube: {density: 500}", "slope_slider's cube takes no 'density': choose from mass"),
        ("cube: {friction: -1}", "slope_slider's cube: friction = -1.0: Input should be gre"),
        ("cube: {restitution: 1.2}", "slope_slider's cube: restitution = 1.2: Input should be l"),
        ("cube: {mass: 0}", "slope_slider's cube: mass = 0.0: Input should be greater than 0"),
    ],
)
def test_fitted_numbers_that_no_body_takes_are_refused(tmp_path, properties, said):
    path = tmp_path / "fit.yaml"
    path.write_text(f"family: slope_slider\nfitted_on: half\nproperties: {{{properties}}}\n")
    with pytest.raises(UserError, match=re.escape(f"{path}: {said}")):
        make("SlopeSlider", engine="bullet", config=str(path))


@pytest.mark.parametrize(
    ("kwargs", "steps"),
    [({}, 45), ({"control_period": "1/60"}, 90), ({"control_period": "1/10"}, 15),
     ({"control_period": "1/60", "max_steps": 7}, 7), ({"material": "metal"}, 59)],
)  # fmt: skip
def test_an_episode_is_the_set_ups_record_at_any_control_period(kwargs, steps):
    assert make("SlopeSlider", engine="bullet", subtask="3", **kwargs).max_steps == steps


# --- plans ----------------------------------------------------------------------------------------

PLANS = [(env_id, name) for env_id in FAMILIES for name in plans_of(env_id)]


@pytest.mark.parametrize(("env_id", "name"), PLANS)
def test_a_plan_is_whole_and_fits_the_record(env_id, name):
    plan = load_plan(env_id, name)
    led = any(segment.values for segment in plan.segments)
    env = make(env_id, drive="action" if led else None)
    actions = plan.actions(env.channels, env.clock.control_period)
    assert len(actions) == exact(plan.duration) * 30
    assert len(actions) <= env.max_steps
    assert actions.any() == led
    assert set(plan.dimensions) <= set(DIMENSIONS)
    assert len(plan.prompt.split()) > 60
    assert len(plan.negative_prompt.split()) > 10
    assert plan.doc.endswith("?")
    if led:
        with pytest.raises(UserError, match="as it was made, has no channels"):
            plan.actions((), env.clock.control_period)


def test_quarter_turns_carry_the_cube_out_and_back():
    env = make("Turntable", engine="bullet", drive="action")
    state = record(env, plan=load_plan("Turntable", "quarter_turns"), seed=0).log.state
    plate, cube = env.scene.index("plate"), env.scene.index("cube")
    middle = state.position[0, plate, :2]
    out, back = (state.position[round(t * 180), cube, :2] - middle for t in (1.5, 2.9))
    x, y = state.position[0, cube, :2] - middle
    assert out == pytest.approx([-y, x], abs=2e-3)
    assert back == pytest.approx([x, y], abs=4e-3)


def test_a_family_without_plans_says_so():
    with pytest.raises(UserError, match="Funnel-v0 has no plan 'clip': it has none"):
        load_plan("Funnel", "clip")


# --- drives ---------------------------------------------------------------------------------------


def test_a_measured_motion_takes_the_cards_place_and_its_hash_is_told(tmp_path):
    path = tmp_path / "spin.csv"
    path.write_text("time,x,y,z,angle\n0,0,0,0,0\n0.5,0,0,0,0.6\n1.0,0,0.02,0,0.6\n")
    env = played(30, "Turntable", engine="bullet", drive=str(path))
    assert env.facts["gauge"]["drives"]["plate"] == drive_hash(read_measured(path))
    plate = env.scene.index("plate")
    start = env.scene.bodies[plate].position
    state = env.log.state
    assert state.position[-1, plate] == pytest.approx(
        (start[0], start[1] + 0.02, start[2]), abs=1e-12
    )
    w, _, _, z = state.quaternion_wxyz[-1, plate]
    assert 2 * math.atan2(z, w) == pytest.approx(0.6, abs=1e-9)
    card = make("Turntable", engine="bullet")
    card.reset(seed=0)
    hashes = {
        env.facts["gauge"]["drives"]["plate"],
        card.facts["gauge"]["drives"]["plate"],
        played(0, "Turntable", subtask="2").facts["gauge"]["drives"]["plate"],
    }
    assert len(hashes) == 3
    path.write_text("t,x\n")
    for drive, says in (
        (str(path), "the first line must read"),
        ("actions", "drive = 'actions' is no file: name a .csv file .* or give 'action'"),
    ):
        env = make("Turntable", drive=drive)
        with pytest.raises(UserError, match=says):
            env.reset(seed=0)


def test_the_agent_moves_what_is_led():
    env = make("Turntable", engine="bullet", drive="action")
    assert env.channels == ("plate_x", "plate_y", "plate_z", "plate_turn")
    assert env.action_space.shape == (4,)
    env.reset(seed=0)
    for _ in range(30):
        env.step(np.array([0.0, 0.0, 0.05, 0.1], np.float32))
    plate, cube = env.scene.index("plate"), env.scene.index("cube")
    state, first = env.log.state, env.scene.bodies
    assert state.position[-1, plate, 2] - first[plate].position[2] == pytest.approx(0.05, abs=1e-6)
    w, _, _, z = state.quaternion_wxyz[-1, plate]
    assert 2 * math.atan2(z, w) == pytest.approx(1.0, abs=1e-6)
    arm = np.array(first[cube].position[:2]) - np.array(first[plate].position[:2])
    c, s = math.cos(1.0), math.sin(1.0)
    carried = np.array([[c, -s], [s, c]]) @ arm + np.array(first[plate].position[:2])
    assert state.position[-1, cube, :2] == pytest.approx(carried, abs=2e-3)
    snapshot = Snapshot.model_validate_json(env.get_state().model_dump_json())
    other = make("Turntable", engine="bullet", drive="action")
    other.set_state(snapshot)
    assert other.log.state.sha256() == env.log.state.sha256()


# --- records --------------------------------------------------------------------------------------


def test_a_record_holds_everything_and_is_made_again_to_the_bit(tmp_path):
    env = make("BouncingBall", engine="bullet")
    rollout = record(env, policy=ReplayPolicy(np.zeros((17, 0))), seed=0)
    assert len(rollout.actions) == 17
    assert rollout.metadata["gauge"]["frames"] == 18
    assert rollout.log.contacts.normal_impulse.sum() > 0.1
    write_hdf5(rollout, tmp_path / "bounce.h5")
    back = read_hdf5(tmp_path / "bounce.h5")
    assert back.metadata["gauge"] == rollout.metadata["gauge"]
    assert back.log.state.sha256() == rollout.log.state.sha256()
    again = remake(rollout.metadata, actions=rollout.actions)
    assert again.log.state.sha256() == rollout.log.state.sha256()


@pytest.mark.parametrize(
    "name", ["TextileFlinging", "FoamShearing", "CantileverBeam", "StickStack"]
)
def test_markers_follow_affine_motions_of_what_wears_them(name):
    card = families()[environment_class(name).FAMILY]
    material = card.materials[0]
    built = build(card, "1", material)
    turn = np.array([[1.0, 0.1, 0.0], [0.0, 0.9, 0.2], [0.05, 0.0, 1.1]])
    push = np.array([0.1, -0.2, 0.3])
    start, count = built.scene, len(built.scene.bodies)
    position = np.array([b.position for b in start.bodies])
    quaternion = np.tile([1.0, 0.0, 0.0, 0.0], (2, count, 1))
    shapes = {d.name: rest_shape(d, {}).vertices for d in start.deformables}
    rigid = name == "CantileverBeam"
    if rigid:
        # Rigid cubes do not shear: a pure shift.
        turn = np.eye(3)
    state = StateLog(
        tuple(b.name for b in start.bodies), environment_row(name).dt, np.array([0, 1]),
        np.stack([position, position @ turn.T + push]), quaternion,
        np.zeros((2, count, 3)), np.zeros((2, count, 3)), np.ones((2, count), bool),
        np.zeros((2, count), np.uint8),
        vertices={k: np.stack([v, v @ turn.T + push]) for k, v in shapes.items()},
    )  # fmt: skip
    told = {"gauge": {"family": card.id, "subtask": "1", "material": material}}
    for method, limit in (("barycentric", 4e-4), ("hungarian", 0.01)):
        moved = track_of(start, built.meshes, state, told, method)
        assert moved.shape == (2, card.markers.count, 3)
        assert moved[1] == pytest.approx(moved[0] @ turn.T + push, abs=1e-9)
        assert np.abs(moved[0] - built.markers.points).max() < limit
    with pytest.raises(UserError, match="no markers by 'nearest'"):
        followers(start, built.meshes, built.markers, "nearest")
    with pytest.raises(UserError, match="another scene"):
        track_of(start, built.meshes, state, {}, "barycentric")
