"""The everyday objects in bullet: put down as their cards say, they stay about as they are."""

import math

import pybullet
import pytest

from wmeval.assets.cards import library
from wmeval.assets.models import build_object
from wmeval.scene import Body
from wmeval.sim.engines.bullet_shapes import make_shape, principal_inertia

CARDS = library().objects
STANDING = {
    "food_can", "large_dice", "plastic_bottle", "red_bull_can", "rubiks_cube", "soda_can",
    "toy_duck",
}  # fmt: skip


@pytest.fixture
def client():
    number = pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.81, physicsClientId=number)
    pybullet.setPhysicsEngineParameter(
        fixedTimeStep=1 / 720, numSolverIterations=20, contactERP=0.02, physicsClientId=number
    )
    yield number
    pybullet.disconnect(number)


@pytest.mark.parametrize("key", CARDS)
def test_an_object_that_is_put_down_stays(client, key):
    card = CARDS[key]
    made = build_object(card, library().folders[f"objects/{key}"])
    body = Body(
        name=key, role="actor", motion="dynamic", instance=1, mass=card.physics.mass,
        collision=(made.collision(),), visuals=made.visuals(),
    )  # fmt: skip
    shape = make_shape(pybullet, client, body, made.meshes())
    margin = shape.margin or 0.0
    ground = pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=[5, 5, 0.5], physicsClientId=client
    )
    floor = pybullet.createMultiBody(0, ground, basePosition=[0, 0, -0.5], physicsClientId=client)
    height = made.size[2] / 2 - made.box_center[2] + margin
    thing = pybullet.createMultiBody(
        body.mass, shape.index, basePosition=[0, 0, height], physicsClientId=client
    )
    for number, friction in ((floor, 1.0), (thing, card.physics.friction)):
        pybullet.changeDynamics(
            number, -1, lateralFriction=friction, linearDamping=0.0, angularDamping=0.0,
            contactProcessingThreshold=0.0, physicsClientId=client,
        )  # fmt: skip
    pybullet.changeDynamics(
        thing, -1, localInertiaDiagonal=principal_inertia(body, made.meshes()),
        collisionMargin=margin, physicsClientId=client,
    )  # fmt: skip
    for _ in range(1080):
        pybullet.stepSimulation(physicsClientId=client)
    (x, y, z), (*_, w) = pybullet.getBasePositionAndOrientation(thing, physicsClientId=client)
    turned = 2 * math.degrees(math.acos(min(1.0, abs(w))))
    still = key in STANDING or made.ball is not None
    assert turned < (0.5 if still else 20)
    assert math.hypot(x, y) < (2e-4 if still else 0.14 * max(made.size))
    assert z - height < 2e-4
    assert z - height > (-2e-4 if still else -0.03 * max(made.size))
