"""What is true about GAUGE's families: closed forms, with validity range and derivation."""

from wmeval.eval.truths.closed_form import (
    NO_CLOSED_FORM,
    TRUTHS,
    ClosedForm,
    closed_forms,
    predict,
)
from wmeval.eval.truths.prediction import Number, Prediction, SetUp

__all__ = [
    "NO_CLOSED_FORM",
    "TRUTHS",
    "ClosedForm",
    "Number",
    "Prediction",
    "SetUp",
    "closed_forms",
    "predict",
]
