"""Named ActionPlans: YAML cards beside this file, a folder per scene, named after it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml
from pydantic import ValidationError

from wmeval.envs import environment_row, short_name
from wmeval.errors import UserError, first_problem
from wmeval.plan import ActionPlan


def plans_of(env_id: str) -> tuple[str, ...]:
    """Names of an environment's plans, sorted.

    Raises:
        UserError: no such environment.
    """
    folder = _folder(env_id)
    if not folder.is_dir():
        return ()
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def load_plan(env_id: str, name: str) -> ActionPlan:
    """One plan of an environment.

    Raises:
        UserError: no such environment or plan; the message names the known ones.
    """
    row = environment_row(env_id)
    known = plans_of(row.id)
    if name not in known:
        choices = f"choose from {', '.join(known)}" if known else "it has none"
        raise UserError(f"{row.id} has no plan {name!r}: {choices}")
    return _load(row.id, name)


@cache
def _load(env_id: str, name: str) -> ActionPlan:
    entry = _folder(env_id) / f"{name}.yaml"
    try:
        plan = ActionPlan.read(yaml.safe_load(entry.read_text("utf-8")))
    except ValidationError as error:
        raise UserError(f"plan card {entry}: {first_problem(error)}") from error
    except (yaml.YAMLError, TypeError) as error:
        raise UserError(f"plan card {entry}: {error}") from error
    if (plan.name, plan.scene) != (name, env_id):
        raise UserError(f"plan card {entry} is of plan {plan.name!r} of {plan.scene}: move it")
    return plan


def _folder(env_id: str) -> Traversable:
    # "WMEval/BallRoller-v0": ball_roller.
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", short_name(environment_row(env_id).id)).lower()
    return files("wmeval.envs").joinpath("plans", name)
