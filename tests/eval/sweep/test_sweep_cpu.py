"""CPU time of cells: fine enough for a quick one, and never 0 in a plot."""

from itertools import pairwise

from wmeval.eval.sweep.cells import Cell, CellResult, Measurement, parse_engines
from wmeval.eval.sweep.pictures import grid_points
from wmeval.eval.sweep.prepared import prepare
from wmeval.eval.sweep.running import cpu_seconds
from wmeval.sim.protocol import Probe
from wmeval.sim.world import WorkerWorld


def cell(**more):
    (engine,) = parse_engines("bullet")
    return Cell(engine=engine, config="published-settings", family="slope_slider", subtask="2",
                material="wood", **more)  # fmt: skip


def test_a_worker_that_has_done_little_has_used_time():
    world = WorkerWorld(prepare(cell()).spec)
    try:
        world.reset()
        used = [cpu_seconds(world)]
        for step in range(1, 4):  # a millisecond each, not a tick of 10 ms
            world.advance((), step, Probe("last"))
            used.append(cpu_seconds(world))
    finally:
        world.close()
    assert all(a < b for a, b in pairwise(used))


def test_what_no_clock_has_told_is_in_no_plot_over_time():
    off = Measurement(metric="rmse", value=2.0, expected=1.0, unit="mm")

    def result(step, cpu):
        return CellResult(cell=cell(grid={"dt": f"1/{step}"}), key=str(step), status="ok",
                          measurements=(off,), cpu_s=cpu)  # fmt: skip

    told = grid_points([result(180, 3e-5), result(360, 0.0), result(720, None)])
    assert [p.cost for p in told] == [3e-5]
