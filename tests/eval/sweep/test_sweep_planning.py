"""Planning of a sweep: what is asked for becomes cells, or one clear line."""

import pytest

from wmeval.assets.gauge_cards import families
from wmeval.errors import UserError
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import EngineSpec, parse_engines

BULLET = parse_engines("bullet")


def test_engines_by_name_and_two_builds_of_one_side_by_side():
    assert parse_engines("newton, bullet") == (
        EngineSpec(label="newton", adapter="newton"),
        EngineSpec(label="bullet", adapter="bullet"),
    )
    mixed = parse_engines("bullet,name=main,adapter=newton,python=/a/python,name=pr,adapter=newton")
    assert [(e.label, e.adapter, e.python) for e in mixed] == [
        ("bullet", "bullet", ""),
        ("main", "newton", "/a/python"),
        ("pr", "newton", ""),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bulet", "no engine 'bulet': choose from bullet"),
        ("bullet,bullet", "'bullet' is named twice"),
        ("adapter=bullet", "write NAME, or name=LABEL"),
        ("name=a b,adapter=bullet", "the name 'a b'"),
        (" , ", "name one engine"),
        ("name=isaac,adapter=physx", "the name 'isaac' is another engine's, and this one is physx"),
        ("name=PhysX,adapter=newton", "the name 'PhysX' is another engine's"),
        ("name=carom,adapter=newton", "the name 'carom' is another engine's"),
        ("newton,name=Main,adapter=physx,name=main,adapter=physx", "'Main' and 'main' differ by"),
        ("newton,name=Newton,adapter=newton", "'newton' and 'Newton' differ by case alone"),
        ("name=b2,adapter=bullet,python=/a/python", "b2: bullet runs in wmeval's own interpreter"),
        ("carom", "carom has none of GAUGE's families: choose from bullet, physx, newton, gen"),
        ("blender", "blender has none of GAUGE's families"),
    ],
)
def test_engines_that_are_none_are_refused(text, said):
    with pytest.raises(UserError, match=said):
        parse_engines(text)


def test_no_engine_to_choose_from_is_without_a_family():
    with pytest.raises(UserError) as found:
        parse_engines("bulet")
    assert str(found.value).endswith("choose from bullet, physx, newton, genesis, isaac")


def test_tasks_cover_families_subtasks_and_materials():
    benchmarked = planning.tasks_of("benchmarked")
    assert len({t.card.id for t in benchmarked}) == 14
    everything = planning.tasks_of("all")
    assert {t.card.id for t in everything} == set(families())
    assert len(everything) == sum(
        len(s.frames) for c in families().values() for s in c.subtasks.values()
    )
    slider = planning.tasks_of("slope_slider/2")
    assert {(t.subtask, t.material) for t in slider} == {
        ("2", "wood"), ("2", "plastic"), ("2", "metal")
    }  # fmt: skip
    assert planning.tasks_of("slope_slider,slope_slider/2/wood") == planning.tasks_of(
        "slope_slider"
    )
    assert len(planning.tasks_of("table-3")) == 15


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slider", "no family 'slider'"),
        ("slope_slider/9", "no subtask '9': choose from 1, 2, 3"),
        ("slope_slider/1/jade", "no material 'jade'"),
        ("", "name benchmarked, all, or families"),
    ],
)
def test_tasks_that_are_none_are_refused(text, said):
    with pytest.raises(UserError, match=said):
        planning.tasks_of(text)


def test_a_grid_is_the_product_of_its_axes():
    grid = planning.parse_grid("dt=1/180,1/360, iterations=10,50,solver=mujoco")
    assert grid == {"dt": ("1/180", "1/360"), "iterations": (10, 50), "solver": ("mujoco",)}
    assert len(planning.points(grid)) == 4
    assert planning.points({}) == [{}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1/180", "write NAME=VALUE"),
        ("dt=1/100", "does not divide the recorded 1/30 s"),
        ("dt=0", "positive fraction"),
        ("gap=NaN", "gap = NaN: give a number or a word"),
        ("gap=-Infinity", "give a number or a word"),
        ("solver={}", "solver = {}: give a number or a word"),
        ("a=[]", "give a number or a word"),
        ("dt=fast", "positive fraction"),
        ("a=" + ",".join(map(str, range(65))) + ",b=" + ",".join(map(str, range(65))), "at most"),
    ],
)
def test_grids_that_cannot_be_run_are_refused(text, said):
    with pytest.raises(UserError, match=said):
        planning.parse_grid(text)


def test_configurations_are_known_or_files(tmp_path):
    assert planning.check_config("tuned") == "tuned"
    with pytest.raises(UserError, match="choose from published-settings, tuned"):
        planning.check_config("best")
    fitted = tmp_path / "mine.yaml"
    fitted.write_text("family: pendulum\nfitted_on: the first half\nbase: tuned\n")
    cells = planning.plan(
        BULLET, planning.tasks_of("pendulum,turntable"), [str(fitted)], twice="none"
    )
    assert {c.family for c in cells} == {"pendulum"}
    with pytest.raises(UserError, match="its numbers are of pendulum"):
        planning.plan(BULLET, planning.tasks_of("turntable"), [str(fitted)])
    fitted.write_text("family: pendulum\nfitted_on: the first half\nhz: 100\n")
    with pytest.raises(UserError, match=r"mine\.yaml: hz = 100: .*1/30 s: choose 180, 360"):
        planning.plan(BULLET, planning.tasks_of("pendulum"), [str(fitted)])


def test_the_shortest_cell_of_each_kind_runs_twice():
    tasks = planning.tasks_of("benchmarked")
    cells = planning.plan(parse_engines("bullet,newton"), tasks, ["published-settings"])
    again = [c for c in cells if c.repeat]
    kinds = {(c.engine.label, families()[c.family].kind) for c in again}
    assert kinds == {
        ("bullet", "rigid"), ("newton", "rigid"), ("newton", "textile"), ("newton", "soft")
    }  # fmt: skip
    assert len(again) == len(kinds)
    # An engine that runs whole jobs is no exception.
    jobs = planning.plan(parse_engines("isaac"), tasks, ["published-settings"])
    again = [families()[c.family].kind for c in jobs if c.repeat]
    assert sorted(again) == ["rigid", "soft", "textile"]
    assert not any(c.repeat for c in planning.plan(BULLET, tasks, ["tuned"], twice="none"))
    every = planning.plan(BULLET, tasks, ["tuned"], twice="all")
    assert len(every) == 2 * len(tasks)


def test_shards_part_the_cells_and_keep_repeats_together():
    cells = planning.plan(
        parse_engines("bullet,physx"), planning.tasks_of("slope_slider,pendulum"), ["tuned"]
    )
    parts = [planning.share(cells, (i, 3)) for i in (1, 2, 3)]
    assert sorted(c.name for p in parts for c in p) == sorted(c.name for c in cells)
    for part in parts:
        names = {c.model_copy(update={"repeat": 0}).name for c in part if c.repeat}
        assert names <= {c.name for c in part if not c.repeat}
    for wrong in ("0/2", "3/2", "1", "a/b"):
        with pytest.raises(UserError, match="write I/N"):
            planning.parse_shard(wrong)


def test_keys_tell_cells_and_stamps_apart():
    cells = planning.plan(
        BULLET, planning.tasks_of("slope_slider"), ["published-settings", "tuned"],
        {"iterations": (10, 50)},
    )  # fmt: skip
    assert len({c.key("a") for c in cells}) == len({c.name for c in cells}) == len(cells)
    assert not {c.key("a") for c in cells} & {c.key("b") for c in cells}
