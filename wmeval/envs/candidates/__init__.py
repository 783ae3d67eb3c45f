"""Candidates by name: what stands against the reference.

``parse_candidate("twin:gravity=0.8,fps=24,stride=4")`` gives a `Candidate`; called with a case it
gives a world model. A new kind is one module with ``Options``, ``make`` and ``identity``, if need
be ``check``, and one row here.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wmeval.envs.model import WorldModel, validated
from wmeval.errors import UserError
from wmeval.scene import Card

if TYPE_CHECKING:
    from wmeval.envs.case import Case


@dataclass(frozen=True)
class CandidateRow:
    """One kind of candidate.

    Attributes:
        name: before the colon.
        module: holds ``Options`` (a Card), ``make(options, case, generation)`` and
            ``identity(options, case, generation)``, JSON of all that decides what the model makes;
            ``check(options, env)`` refuses what an environment at its state 0 shows to be wrong.
        argument: option that a bare first value sets; "" for none.
        summary: one line for tables.
        example: how it is written.
    """

    name: str
    module: str
    argument: str
    summary: str
    example: str


CANDIDATES: dict[str, CandidateRow] = {
    row.name: row
    for row in (
        CandidateRow(
            "twin",
            "wmeval.envs.candidates.twin",
            "",
            "the same world, exact, strided, or wrong by a known amount",
            "twin:gravity=0.8,fps=24,stride=4",
        ),
        CandidateRow(
            "frozen",
            "wmeval.envs.candidates.frozen",
            "",
            "repeats the seed frame",
            "frozen:fps=24",
        ),
        CandidateRow(
            "video",
            "wmeval.envs.candidates.video",
            "folder",
            "clips made elsewhere: <case_id>/<generation>.mp4",
            "video:predictions,card=model.yaml",
        ),
        CandidateRow(
            "http",
            "wmeval.envs.candidates.http",
            "url",
            "a model served by another process or machine",
            "http://127.0.0.1:8000,timeout=120",
        ),
        CandidateRow(
            "python",
            "wmeval.envs.candidates.python",
            "target",
            "your own class, in a file or an installed module, in a process of its own",
            "python:my_model.py:MyModel",
        ),
    )
}


@dataclass(frozen=True)
class Candidate:
    """A kind with its options; call it with a case to get a world model.

    Attributes:
        text: as the user wrote it.
        kind: row of `CANDIDATES`.
        options: checked options.
    """

    text: str
    kind: str
    options: Card

    @property
    def _module(self) -> Any:
        return import_module(CANDIDATES[self.kind].module)

    def __call__(self, case: Case, *, generation: int = 0) -> WorldModel:
        """A model for one case; ``generation`` tells repeated draws apart."""
        model: WorldModel = self._module.make(self.options, case, generation)
        return model

    def check(self, case: Case) -> None:
        """Refuse, before any work, what cannot be compared on a case.

        The model is made, so that its card is known, and closed; nothing is simulated or drawn.

        Raises:
            UserError: bad options, a plan that covers none of the model's blocks, a perturbation
                that the scene cannot bear.
            ModelError: the model cannot be made.
        """
        from wmeval.envs.wrapper import check_covered

        with case.open() as env:
            model = self(case)
            try:
                actions = len(case.actions(env))
                check_covered(model.spec, env.clock.control_period, actions)
                if hasattr(self._module, "check"):
                    self._module.check(self.options, env)
            finally:
                model.close()

    def fingerprint(self, case: Case, generation: int = 0) -> str:
        """SHA-256 (hex) of all that is known to decide a generation: stale clips are told by it.

        Twin, frozen: options and this package's version. Python: card and source files. Video: card
        and the clip's bytes. Http: card and the version that the server states.

        Raises:
            UserError: as the call.
        """
        parts = [self.kind, self._module.identity(self.options, case, generation)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def parse_candidate(text: str) -> Candidate:
    """Read "kind", "kind:key=value,..." or "kind:value,key=value,...".

    Raises:
        UserError: an unknown kind or option, or a bad value; the message names the known ones.
    """
    given = text.strip()
    name, _, rest = given.partition(":")
    if name in ("http", "https") and rest.startswith("//"):  # a bare address
        name, rest = "http", given
    if name not in CANDIDATES:
        raise UserError(f"unknown candidate {name!r}: choose from {', '.join(CANDIDATES)}")
    row = CANDIDATES[name]
    values: dict[str, Any] = {}
    for i, part in enumerate(p.strip() for p in rest.split(",")):
        if not part:
            continue
        named = re.match(r"([a-z_]+)\s*=\s*(.*)$", part)
        if named is None:
            if i or not row.argument:
                raise UserError(f"candidate {given!r}: {part!r} is not key=value; {_known(row)}")
            key, value = row.argument, part
        else:
            key, value = named.group(1), named.group(2)
        if key in values:
            raise UserError(f"candidate {given!r}: {key!r} is given twice")
        values[key] = value
    kind = import_module(row.module).Options
    return Candidate(given, name, validated(kind, values, where=f"candidate {given!r}"))


def _known(row: CandidateRow) -> str:
    options = import_module(row.module).Options.model_fields
    return f"options of {row.name}: {', '.join(options)}; for example {row.example}"
