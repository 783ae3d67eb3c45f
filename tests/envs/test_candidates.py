"""Candidates by name, and the simulator-backed ones against the real engine."""

from fractions import Fraction as F

import numpy as np
import pytest

from wmeval.clock import CandidateClock
from wmeval.envs.adapters import channels_of, make_adapter
from wmeval.envs.base import WorldEnv
from wmeval.envs.candidates import CANDIDATES, parse_candidate
from wmeval.envs.case import Case, refuse_evaluation, resized_context
from wmeval.envs.model import ModelError, ModelSpec
from wmeval.envs.wrapper import drive, native_controls
from wmeval.errors import UserError
from wmeval.plan import ActionPlan
from wmeval.records import WorldLog
from wmeval.sim.events import classify_shape

TA = F(1, 60)


def plan(duration=2.0, segments=((0, 1.5, 1.0),), **options):
    return ActionPlan(
        name="push",
        scene="WMEval/BeamDomino-v0",
        dimensions=("causality",),
        doc="",
        duration=duration,
        segments=[{"start": a, "end": b, "values": {"force_z": v}} for a, b, v in segments],
        reset_options={"shape": "canonical", **options},
        prompt="The red ball rolls.",
        negative_prompt="blur",
    )


def case(**kwargs):
    return Case(**{"env_id": "BeamDomino", "plan": plan(), "width": 32, "height": 16, **kwargs})


@pytest.fixture
def no_pictures(monkeypatch):
    """States without a renderer: pictures are counted, not drawn."""
    drawn = []

    def draw(self, layers=("rgb",), *, width=None, height=None, view=None, log=None, row=-1):
        drawn.append((view, None if log is None else int(log.state.substep[row])))
        shape = (height or self.height, width or self.width, 3)
        return {"rgb": np.full(shape, len(drawn) % 256, np.uint8)}

    monkeypatch.setattr(WorldEnv, "draw", draw)
    return drawn


def reference(case):
    """Every substep's state of the reference, its actions and events."""
    with case.open() as env:
        actions = case.actions(env)
        with env.keeping():
            case.reset(env)
            logs = [env.step_log]
            for action in actions.astype(np.float32):
                env.step(action)
                logs.append(env.step_log)
        return WorldLog.concatenate(logs), env.actions, env.events


def driven(text, case):
    model = parse_candidate(text)(case)
    with case.open() as env:
        adapter = make_adapter(model.spec, channels_of(env), control_period=TA)
        clip = drive(model, adapter, reference(case)[1], case.context(env, model.spec))
    model.close()
    return model, clip


# --- names --------------------------------------------------------------------------------------


def test_options_are_read():
    candidate = parse_candidate("twin:gravity=0.8,fps=24,stride=4")
    assert candidate.kind == "twin"
    assert (candidate.options.gravity, candidate.options.fps, candidate.options.stride) == (
        0.8,
        "24",
        4,
    )
    assert parse_candidate("twin").options.fps is None
    address = parse_candidate("http://127.0.0.1:8000,timeout=5")
    assert (address.kind, address.options.url) == ("http", "http://127.0.0.1:8000")
    assert parse_candidate("video:some/folder").options.folder == "some/folder"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("twn", "unknown candidate 'twn': choose from twin, frozen, video, http, python"),
        ("twin:gravty=1", "gravty: .*known fields: .*gravity"),
        ("twin:gravity=heavy", "gravity"),
        ("twin:gravity=-1", "gravity"),
        ("twin:gravity=1,gravity=2", "'gravity' is given twice"),
        ("twin:0.8", "'0.8' is not key=value; options of twin: .*for example twin:"),
        ("twin:fps=0", "must be > 0"),
        ("twin:fps=fast", "not an exact number"),
        ("frozen:stride=0", "stride"),
        ("video", "folder: Field required"),
        ("http", "url: Field required"),
        ("python:my_model", "target"),
        ("", "unknown candidate"),
    ],
)
def test_a_bad_candidate_is_one_clear_error(text, message):
    with pytest.raises(UserError, match=rf"(?s){message}"):
        parse_candidate(text)


def test_every_row_loads_and_its_example_parses():
    for row in CANDIDATES.values():
        assert parse_candidate(row.example).kind == row.name


# --- cases --------------------------------------------------------------------------------------


def test_a_case_has_a_stable_name_and_its_own_seeds():
    a = case()
    assert a.case_id == "BeamDomino-push-s000-follow"
    assert case(scene_seed=12, view="static").case_id == "BeamDomino-push-s012-static"
    kwargs = case(env_kwargs={"info_level": "state"}).case_id
    assert kwargs.startswith("BeamDomino-push-s000-follow-")
    assert Case.model_validate_json(a.model_dump_json()) == a
    with a.open() as env:
        judged = env.log.state.sha256()
        env.reset(seed=0, options={"shape": "canonical"})
        assert env.log.state.sha256() != judged  # the training scene of the same seed
        a.reset(env)
        assert env.log.state.sha256() == judged


@pytest.mark.parametrize(("width", "height"), [(64, 32), (16, 32), (32, 16)])
def test_a_stored_seed_frame_is_resized_with_its_intrinsics(width, height):
    frame = np.repeat(np.arange(0, 128, 4, np.uint8)[None, :, None], 16, 0).repeat(3, 2)
    spec = ModelSpec(name="m", width=width, height=height, context_length=2)
    K = np.array([[20.0, 0, 16], [0, 20, 8], [0, 0, 1]])
    context = resized_context(frame, K, plan(), spec, TA)
    assert context.frames.shape == (2, height, width, 3)
    assert context.K.tolist() == [
        [20 * width / 32, 0, width / 2],
        [0, 20 * height / 16, height / 2],
        [0, 0, 1],
    ]
    ramp = context.frames[-1, height // 2, :, 0].astype(float)
    centres = (np.arange(width) + 0.5) * 32 / width - 0.5
    assert np.abs(ramp - 4 * centres)[2:-2].max() <= 1
    if width == 32:
        assert np.array_equal(context.frames[0], frame)


def test_training_refuses_evaluation_seeds():
    refuse_evaluation({"shape": "canonical"}, what="generate rollouts")
    refuse_evaluation(None, what="generate rollouts")
    with pytest.raises(UserError, match="generate rollouts: seed_space 'evaluation' is kept"):
        refuse_evaluation(case().options, what="generate rollouts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env_id": "BeamDominoes"}, "unknown environment 'BeamDominoes'"),
        ({"env_kwargs": {"colour": 1}}, "colour"),
        ({"view": "behind"}, "unknown option view 'behind'"),
        ({"plan": plan(shape="sideways")}, "sideways"),
    ],
)
def test_a_bad_case_is_one_clear_error(change, message):
    with pytest.raises(ValueError, match=message), case(**change).open():
        pass


# --- twin ---------------------------------------------------------------------------------------


def test_the_identity_twin_is_the_reference_bit_for_bit(no_pictures):
    states, actions, events = reference(case())
    assert "impact" in {e.kind for e in events}
    model, clip = driven("twin", case())
    assert clip.times == tuple(j * TA for j in range(len(actions) + 1))
    assert clip.record.state.sha256() == states.state.rows(slice(None, None, 4)).sha256()
    assert np.array_equal(clip.record.cameras.T_world_camera, states.cameras.T_world_camera[::4])
    assert clip.record.events == events
    assert model.spec.name == "twin"


def test_a_frame_shows_the_state_that_its_record_holds(no_pictures):
    _, clip = driven("twin:fps=25", case())
    shown = [k for view, k in no_pictures if k is not None and view == "follow"]
    assert shown == clip.record.state.substep[1:].tolist()
    assert shown == [
        CandidateClock(F(25), 1).state_of_frame(j, F(1, 240)) for j in range(1, len(clip))
    ]


@pytest.mark.parametrize(
    "text", ["twin:fps=24,stride=4", "twin:fps=16,stride=2", "twin:fps=25,stride=3,chunk=2"]
)
def test_a_strided_twin_runs_on_exactly_the_reduced_actions(text, no_pictures):
    """Brute force: the reference world under, at each substep, its block's reduced action."""
    c = case(plan=plan(2.0, [(0, "0.75", 1.0), ("23/30", "73/60", -0.4)]))
    model, clip = driven(text, c)
    clock = model.spec.clock
    with c.open() as env:
        adapter = make_adapter(model.spec, channels_of(env), control_period=TA)
        controls = native_controls(clock, TA, adapter, reference(c)[1])
        from wmeval.sim.protocol import Probe
        from wmeval.sim.world import open_world

        world = open_world(env.world_spec)
        log = [world.reset()]
        for n in range(int(clip.record.state.substep[-1])):
            b = clock.block_of_instant(F(n, 240))
            log.append(world.advance(tuple(controls[b].tolist()), n + 1, Probe()))
    states = WorldLog.concatenate(log).state
    wanted = states.rows(clip.record.state.substep)
    assert clip.record.state.sha256() == wanted.sha256()
    unreduced = reference(c)[0].state.rows(clip.record.state.substep)
    assert clip.record.state.sha256() != unreduced.sha256()  # the reduction floor is not zero


def test_errors_grow_with_the_perturbation(no_pictures):
    c = case(plan=plan(1.0, [(0, 1, 1.0)]))
    truth = driven("twin", c)[1].record.state

    def error(text):
        other = driven(text, c)[1].record.state
        ball = int(np.argmax(np.abs(np.diff(truth.position, axis=0)).sum((0, 2))))
        return float(
            np.linalg.norm(other.position[:, ball] - truth.position[:, ball], axis=1).mean()
        )

    for key, doses in (
        ("gain", (0.95, 0.9, 0.8)),
        ("mass", (1.05, 1.1, 1.2)),
        ("delay", (0.0125, 0.05, 0.1)),
    ):
        errors = [error(f"twin:{key}={d}") for d in doses]
        assert 0 < errors[0] < errors[1] < errors[2], key


def test_a_gain_is_the_environments_own_perturbation(no_pictures):
    """One perturbation, two ways to it: as a candidate, and as a wrong environment."""
    c = case(plan=plan(1.0, [(0, 1, 0.8)]))
    _, clip = driven("twin:gain=0.7,delay=0.05,friction=0.5", c)
    wrong = c.model_copy(update={"env_kwargs": {"perturb": "gain=0.7,delay=0.05,friction=0.5"}})
    states, _, _ = reference(wrong)
    assert clip.record.state.sha256() == states.state.rows(slice(None, None, 4)).sha256()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("twin:fps=480", "480 fps is more than one frame per state"),
        ("twin:delay=0.001", "not a whole number of substeps of 1/240"),
    ],
)
def test_a_twin_that_the_clock_cannot_hold_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        parse_candidate(text)(case())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("twin:stride=1000", r"120 actions of 1/60 s, 2 s in all, do not cover the 16.67 s that"),
        ("frozen:fps=24,chunk=49", "do not cover the 2.042 s .* less stride or chunk"),
        ("twin:restitution=101", r"restitution: Input should be less than or equal to 100"),
        ("twin:restitution=5", r"would bounce with 2.01 > 1; use a factor of at most 1.23"),
        ("twin:fps=480", "480 fps is more than one frame per state"),
    ],
)
def test_what_a_case_cannot_bear_is_refused_before_any_work(text, message, no_pictures):
    bouncy = case(env_id="BallRoller", plan=plan().model_copy(update={"reset_options": {}}))
    with pytest.raises(UserError, match=message) as caught:
        parse_candidate(text).check(bouncy)
    assert "\n" not in str(caught.value)
    assert not no_pictures


@pytest.mark.parametrize("text", ["twin:gravity=0.5,fps=24,stride=48", "frozen:fps=24,chunk=48"])
def test_what_a_case_can_bear_passes(text, no_pictures):
    parse_candidate(text).check(case())
    assert not no_pictures


def test_a_model_whose_clip_holds_no_chunk_is_refused(tmp_path):
    (tmp_path / "model.yaml").write_text("name: m\nframes_per_action: 4\nmax_frames: 4")
    with pytest.raises(UserError, match="'m': max_frames 4 does not hold one chunk of 4 frames"):
        parse_candidate(f"video:{tmp_path}").check(case())


def test_a_model_can_be_reset_again(no_pictures):
    c = case(plan=plan(0.5, [(0, "0.5", 1.0)]))
    model = parse_candidate("twin")(c)
    with c.open() as env:
        adapter = make_adapter(model.spec, channels_of(env), control_period=TA)
        context, actions = case().context(env, model.spec), c.actions(env)
        digests = {drive(model, adapter, actions, context).record.state.sha256() for _ in range(2)}
    model.close()
    assert len(digests) == 1


def test_the_fingerprint_of_a_simulator_is_its_options_and_the_version(monkeypatch):
    def digest(text, **changes):
        return parse_candidate(text).fingerprint(case(**changes))

    first = digest("twin:gravity=0.8,stride=2")
    assert digest("twin:stride=2,gravity=0.80") == first
    assert digest("twin:stride=2,gravity=0.81") != first
    assert digest("twin") != digest("frozen")
    monkeypatch.setattr("wmeval.__version__", "next")
    assert digest("twin:gravity=0.8,stride=2") != first


# --- video --------------------------------------------------------------------------------------


def test_the_fingerprint_of_a_clip_is_its_bytes_and_card(tmp_path):
    card, clip = tmp_path / "model.yaml", tmp_path / case().case_id / "1.mp4"
    candidate = parse_candidate(f"video:{tmp_path}")
    digests = []
    for name, data in (("a", b"1"), ("a", b"2"), ("b", b"1"), ("a", b"1")):
        clip.parent.mkdir(exist_ok=True)
        clip.write_bytes(data)
        card.write_text(f"name: {name}")
        digests.append(candidate.fingerprint(case(), 1))
    assert len({*digests, candidate.fingerprint(case(), 0)}) == 4  # no clip is another clip
    assert digests[0] == digests[3]


def test_a_folder_without_clips_says_what_belongs_there(tmp_path):
    with pytest.raises(UserError, match=r"no folder \S+nodir; it holds .*`wmeval cases export`"):
        parse_candidate(f"video:{tmp_path / 'nodir'}")(case())
    with pytest.raises(UserError, match=r"holds no model\.yaml, the model's card: .*card=FILE"):
        parse_candidate(f"video:{tmp_path}")(case())
    with pytest.raises(UserError, match=r"model card absent\.yaml: No such file"):
        parse_candidate(f"video:{tmp_path},card=absent.yaml")(case())


# --- frozen -------------------------------------------------------------------------------------


def test_frozen_repeats_frame_and_state(no_pictures):
    model, clip = driven("frozen:fps=24,stride=4", case())
    assert (clip.frames == clip.frames[0]).all()
    state = clip.record.state
    assert (state.position == state.position[0]).all()
    assert not state.linear_velocity.any()
    assert state.substep.tolist() == [10 * j for j in range(len(clip))]
    assert clip.record.events == ()
    assert classify_shape(clip.record.events) == "none"
    assert model.spec.name == "frozen"


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.gl
def test_the_identity_twins_pictures_are_the_references():
    c = case(plan=plan(0.5, [(0, "0.5", 1.0)]), width=96, height=64)
    _, clip = driven("twin:fps=10,stride=1", c)
    with c.open() as env:
        pictures = [env.draw(("rgb",))["rgb"]]
        for i, action in enumerate(c.actions(env).astype(np.float32)):
            env.step(action)
            if (i + 1) % 6 == 0:
                pictures.append(env.draw(("rgb",))["rgb"])
    assert np.array_equal(clip.frames, pictures)
    assert len({f.tobytes() for f in clip.frames}) == len(clip)


# --- your own class -----------------------------------------------------------------------------

OWN = """
import numpy as np
from wmeval.envs.model import ModelSpec

class Grey:
    spec = ModelSpec(name="grey", fps=30, width=32, height=16)

    def reset(self, context_frames, prompt, negative_prompt, seed, intrinsics):
        pass

    def step(self, controls):
        return np.full((len(controls), 16, 32, 3), 128, np.uint8)

    def close(self):
        pass

class Broken:
    def __init__(self):
        raise RuntimeError("no weights")

NOTHING = 3
"""


def test_your_own_class_in_a_file(tmp_path, no_pictures):
    (tmp_path / "own.py").write_text(OWN)
    _, clip = driven(f"python:{tmp_path / 'own.py'}:Grey", case())
    assert (clip.frames[1:] == 128).all()
    assert clip.record is None
    assert clip.times[1] == F(1, 30)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("own.py:Absent", "has no class 'Absent'"),
        ("own.py:NOTHING", "has no class 'NOTHING'"),
        ("own.py:Broken", "no weights"),
        ("absent.py:Grey", "no file"),
        ("bad.py:Grey", r"import of \S*bad.py raised SyntaxError"),
        ("no_such_package.module:Grey", "import of .* raised ModuleNotFoundError"),
        ("collections:OrderedDict", "has no `spec`"),
    ],
)
def test_a_class_that_cannot_be_made_is_one_clear_error(tmp_path, monkeypatch, target, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "bad.py").write_text("1 +")
    with pytest.raises((UserError, ModelError), match=message):
        parse_candidate(f"python:{target}")(case())
