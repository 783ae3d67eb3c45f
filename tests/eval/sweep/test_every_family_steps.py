"""Every family that a card says an engine has: built and stepped there in both configurations."""

import dataclasses
import math

import numpy as np
import pytest
from engine_worlds import engine_here

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import ENGINES, NAMES, engines_of
from wmeval.envs.gauge.solver_rows import PUBLISHED, TUNED
from wmeval.errors import UserError
from wmeval.eval.sweep.cells import Cell, EngineSpec
from wmeval.eval.sweep.running import prepare
from wmeval.sim.engines import genesis
from wmeval.sim.engines.engine_options import options_of
from wmeval.sim.engines.joint_tree import joint_tree
from wmeval.sim.protocol import Probe
from wmeval.sim.world import World, open_world

STEPS = 2
BENDS = ("textile", "soft")
COARSE = {
    **dict.fromkeys(
        ("textile_stretching", "textile_bending", "textile_flinging", "funnel", "rotating_ball",
         "tablecloth_pulling"), 0.05),
    **dict.fromkeys(
        ("foam_stretching", "foam_compressing", "foam_shearing", "foam_twisting"), 0.025),
}  # fmt: skip
"""Cells [m] by which what is dear is soon built; the finest foam is built of its card's own."""
BENT_BY_GENESIS = (
    ("funnel", PUBLISHED), ("funnel", TUNED), ("foam_bending", PUBLISHED),
    ("cantilever_beam", TUNED),
)  # fmt: skip
"""Genesis compiles every scene of what bends for seconds: one cell of each of its solvers. What it
would refuse of the others, it does before."""


def cell_of(card, engine, config):
    subtask = next(iter(card.subtasks))
    return Cell(
        engine=EngineSpec(label=engine, adapter=engine), config=config, family=card.id,
        subtask=subtask, material=next(iter(card.subtasks[subtask].frames)),
        grid={"cell": COARSE[card.id]} if card.id in COARSE else {},
    )  # fmt: skip


def cells_of(engine):
    return [
        cell_of(card, engine, config)
        for card in families().values()
        for config in (NAMES if engine in engines_of(card) else ())
    ]


def test_of_what_bends_genesis_refuses_no_family_that_a_card_gives_it():
    """What it would refuse before anything is compiled: pins, particles, waves, substeps."""
    bending = [c for c in cells_of("genesis") if families()[c.family].kind in BENDS]
    assert len({c.family for c in bending}) == 13
    for cell in bending:
        ready = prepare(cell.model_copy(update={"grid": {}}))
        engine, scene = genesis.GenesisEngine(), ready.spec.scene
        engine._set_stage(scene, ready.spec.clock.dt)
        engine._numbers, words = options_of(
            "genesis", genesis.OPTIONS, ready.spec.config, genesis.CHOICES
        )
        bent = engine._bent(scene, ready.spec.meshes)
        assert engine._ways(bent, words, joint_tree(scene, "genesis")), cell.name


@pytest.mark.accept
@pytest.mark.parametrize("engine", ENGINES)
def test_every_family_is_built_and_steps_in_both_configurations(engine):
    engine_here(engine)
    world: World | None = None
    wrong = []
    for cell in cells_of(engine):
        bends = families()[cell.family].kind in BENDS
        if engine == "genesis" and bends and (cell.family, cell.config) not in BENT_BY_GENESIS:
            continue
        ready = prepare(cell)
        try:
            world = open_world(dataclasses.replace(ready.spec, settle=0), instead_of=world)
            first = world.reset().state
            state = world.advance((), STEPS, Probe("last")).state
        except UserError as error:
            world = None
            wrong.append(f"{cell.name}: {error}")
            continue
        assert state.times[-1] == pytest.approx(STEPS / ready.settings.hz)
        for name, vertices in state.vertices.items():
            moved = np.abs(vertices[-1] - first.vertices[name][-1]).max()
            if not moved < 0.01:
                wrong.append(f"{cell.name}: {name} went {moved:.3g} m in {STEPS} steps")
        fast = np.abs(state.linear_velocity[-1]).max()
        if not (math.isfinite(fast) and fast < 10.0):
            wrong.append(f"{cell.name}: {fast:.3g} m/s after {STEPS} steps")
    if world is not None:
        world.close()
    assert not wrong, "\n".join(wrong)
