"""The rope about its beam, which all engines make of capsules: it holds, and makes no energy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import engine_here

from wmeval.assets.gauge_cards import family
from wmeval.clock import SceneClock
from wmeval.envs.gauge.build import build
from wmeval.envs.gauge.configurations import settings_of
from wmeval.envs.gauge.solver_rows import PUBLISHED, TUNED
from wmeval.sim.protocol import EventRules, Probe, WorldSpec
from wmeval.sim.world import open_world


@pytest.mark.accept
@pytest.mark.parametrize("engine", ["bullet", "physx"])
def test_a_rope_under_two_balls_holds_together_and_makes_no_energy(engine):
    engine_here(engine)
    card = family("rope_winding")
    built = build(card, "1", "rubber")
    settings = settings_of(card, engine, TUNED)
    scene, hz = built.scene, settings.hz
    # A third of the card's settling: what is left of it swings on, and is counted.
    world = open_world(
        WorldSpec(scene, built.meshes, built.drives.specs,
                  SceneClock(Fraction(1, hz), Fraction(1, 30)), EventRules(), engine,
                  settings.config, hz)
    )  # fmt: skip
    first = world.reset()
    state = (
        type(first)
        .concatenate([first, world.advance((), round(0.7 * hz), Probe(states="substeps"))])
        .state
    )
    world.close()
    rope, beam = scene.deformables[0], scene.bodies[scene.index("beam")]
    nodes, balls = state.vertices["rope"], [scene.index(n) for n in ("ball_1", "ball_2")]
    # What is tied stays tied, on the balls' skins.
    for node, ball in ((0, balls[0]), (-1, balls[1])):
        apart = np.linalg.norm(nodes[:, node] - state.position[:, ball], axis=1)
        assert np.abs(apart - 0.03).max() < 1e-6
    # It does not pass through the beam, and stays on it.
    across = nodes[..., (0, 2)] - np.array(beam.position)[[0, 2]]
    off = np.linalg.norm(across, axis=2).min(axis=1)
    assert off.min() > 0.005 + 0.9 * rope.radius
    assert off.max() < 0.005 + rope.radius + 0.003
    lengths = np.linalg.norm(np.diff(nodes, axis=1), axis=2)
    strain = lengths / 0.01 - 1
    assert strain.max() < 0.75
    # Energy: of balls, pieces and springs; the balls' spin is little and left out.
    mass = np.array([scene.bodies[b].mass for b in balls])
    piece = rope.density * math.pi * rope.radius**2 * 0.01
    middle = (nodes[:, 1:] + nodes[:, :-1]) / 2
    v = state.linear_velocity[:, balls]
    energy = (mass * (9.81 * state.position[:, balls, 2] + (v**2).sum(axis=2) / 2)).sum(axis=1)
    energy += 9.81 * piece * middle[..., 2].sum(axis=1)
    energy += rope.stretch * 0.01 / 2 * (strain**2).sum(axis=1)
    least = np.minimum.accumulate(energy)
    scale = float(mass.sum()) / 2 * 0.8**2
    assert (energy - least).max() < 0.1 * scale
    assert energy[-1] < energy[0]


@pytest.mark.accept
def test_a_rope_of_newton_does_not_let_its_beam_through_under_two_balls():
    """They fall, stretch it by a half and are caught by the ground: twice what hangs at rest."""
    engine_here("newton")
    card = family("rope_winding")
    built, settings = build(card, "1", "rubber"), settings_of(card, "newton", PUBLISHED)
    scene, hz = built.scene, settings.hz
    world = open_world(
        WorldSpec(scene, built.meshes, (), SceneClock(Fraction(1, hz), Fraction(1, 30)),
                  EventRules(), "newton", settings.config)
    )  # fmt: skip
    world.reset()
    state = world.advance((), round(0.32 * hz), Probe(states="substeps")).state
    world.close()
    beam = np.array(scene.bodies[scene.index("beam")].position)
    across = state.vertices["rope"][..., (0, 2)] - beam[[0, 2]]
    off = np.linalg.norm(across, axis=2).min(axis=1)
    touching = 0.005 + scene.deformables[0].radius
    assert touching - 3e-4 < off.min()
    assert off.max() < touching + 1e-3
    lowest = state.position[:, [scene.index(n) for n in ("ball_1", "ball_2")], 2].min(axis=0)
    assert np.all(lowest < 0.035)
