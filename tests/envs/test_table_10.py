"""The nine scenes are the paper's: Table 10 and the appendix "Unity Scenes", row by row."""

from dataclasses import dataclass

import pytest

from wmeval.envs import ENVIRONMENTS, environment_class, every_row, short_name
from wmeval.envs.plans import load_plan, plans_of
from wmeval.tables import DIMENSIONS, listing


@dataclass(frozen=True)
class Paper:
    """One row of Table 10.

    Attributes:
        continuous, discrete: components of the action.
        observation: length of the vector.
        camera: the paper's words, as the name of ours.
        dimensions: of Table 10.
        beside: dimensions of the scene's own paragraph or of a table of results.
    """

    continuous: int
    discrete: int
    observation: int
    camera: str
    dimensions: set
    beside: frozenset = frozenset()


PROMPT = frozenset({"prompt_consistency"})
TABLE_10 = {
    "BallRoller": Paper(
        2, 0, 48, "follow", {"controllability", "causal_lpips", "consistency"}, PROMPT
    ),
    "BeamDomino": Paper(2, 0, 92, "follow", {"causality", "controllability", "causal_lpips"}),
    "BilliardGame": Paper(
        10, 2, 13, "overhead", {"kinematics", "causal_lpips"},
        frozenset({"consistency"}),  # Table 7
    ),
    "ChessBoard": Paper(2, 2, 8, "follow", {"consistency"}, PROMPT),
    "MirrorRollingBall": Paper(
        2, 0, 297, "follow", {"consistency", "kinematics"},
        PROMPT | {"controllability"},  # Table 2
    ),
    "LiquidContainer": Paper(6, 0, 24, "side", {"fluid"}),
    "RacingCar": Paper(2, 1, 13, "follow", {"kinematics", "consistency"}, PROMPT),
    "SunRisesAndSets": Paper(0, 0, 9, "orbit", {"lighting"}),
    "WanderingGarden": Paper(4, 0, 50, "first", {"consistency"}),
}  # fmt: skip
ROWS = {short_name(row.id): row for row in ENVIRONMENTS.values() if row.id.startswith("WMEval/")}


def test_the_nine_scenes_are_there_and_no_other():
    assert set(ROWS) == set(TABLE_10)


@pytest.mark.parametrize("name", TABLE_10)
def test_numbers_of_table_10(name):
    paper, row = TABLE_10[name], ROWS[name]
    assert len(row.branches) == paper.discrete
    assert len(row.channels) == paper.continuous + paper.discrete
    assert row.observation == paper.observation
    assert row.view == paper.camera
    assert set(row.dimensions) == paper.dimensions | paper.beside
    env = environment_class(row.id)(observation_mode="vector")
    assert env.observation_space.shape == (paper.observation,)
    env.close()
    # "50 + 128x128 RGB"
    assert row.image == ((128, 128) if name == "WanderingGarden" else None)


@pytest.mark.parametrize("name", ROWS)
def test_every_dimension_has_a_plan_of_its_scene(name):
    plans = [load_plan(name, p) for p in plans_of(name)]
    for dimension in ROWS[name].dimensions:
        assert any(dimension in plan.dimensions for plan in plans), dimension


CONSISTENCY = ("perturb_left", "perturb_right", "sweep_left", "sweep_right")


@pytest.mark.parametrize("name", ["WanderingGarden", "BilliardGame", "MirrorRollingBall"])
def test_scenes_of_table_7_are_perturbed_and_swept(name):
    regimes = [load_plan(name, p).reset_options.get("camera_motion") for p in plans_of(name)]
    assert set(CONSISTENCY) <= set(regimes)


@pytest.mark.parametrize("name", ["ChessBoard", "MirrorRollingBall", "RacingCar"])
def test_scenes_of_table_9_turn_in_first_and_third_person(name):
    options = [load_plan(name, p).reset_options for p in plans_of(name)]
    views = {o.get("view", "third") for o in options if o.get("camera_motion") == "turn"}
    assert {v.replace("follow", "third") for v in views} >= {"first", "third"}


def test_the_matrix_of_scenes_and_dimensions_is_listed():
    _, columns, rows = listing("envs")
    assert columns[3 : 3 + len(DIMENSIONS)] == tuple(DIMENSIONS.values())
    assert {line[0] for line in rows} == set(every_row())
    for line in rows:
        if short_name(line[0]) not in ROWS:
            continue
        paper = TABLE_10[short_name(line[0])]
        counts = [f"{n}{k}" for n, k in ((paper.continuous, "C"), (paper.discrete, "D")) if n]
        assert line[1] == (" + ".join(counts) or "none")
        assert line[2].split()[0] == str(paper.observation)
        marked = {d for d, cell in zip(DIMENSIONS, line[3:], strict=False) if cell == "x"}
        assert marked == paper.dimensions | paper.beside
