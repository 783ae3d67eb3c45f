"""What an engine does with each parameter: asked against effective, one small world each.

An engine passes this suite before its numbers of anything else count. Every check is a scene with
one known answer, a time to run, and a pure function of the log that gives the *effective* value of
the quantity that was asked for: gravity, restitution, friction, a period, a stiffness. A check that
an engine has no physics for is `not_run`, one that it cannot finish is `failed`, each with the
reason; neither is left out.

Effective values depend on dt, iterations and settings: the table is of one configuration.
"""

from wmeval.eval.conformance.suite import Outcome, rows_of, run_suite, spec_of
from wmeval.eval.conformance.table import CHECKS, Check

__all__ = ["CHECKS", "Check", "Outcome", "rows_of", "run_suite", "spec_of"]
