"""Motion capture: the schema `wmeval-mocap/1`, readers of public recordings, `get`."""

from wmeval.datasets.mocap.contactnets import (
    TossState,
    first_state,
    lowest_corner,
    read_contactnets,
)
from wmeval.datasets.mocap.files import read_mocap, write_mocap
from wmeval.datasets.mocap.pendulum import read_pendulum
from wmeval.datasets.mocap.schema import (
    FORMAT,
    Header,
    Mocap,
    Signal,
    Trial,
    Uncertainty,
    Units,
    make_trial,
)
from wmeval.datasets.mocap.sources import SOURCES, Source, get

__all__ = [
    "FORMAT",
    "SOURCES",
    "Header",
    "Mocap",
    "Signal",
    "Source",
    "TossState",
    "Trial",
    "Uncertainty",
    "Units",
    "first_state",
    "get",
    "lowest_corner",
    "make_trial",
    "read_contactnets",
    "read_mocap",
    "read_pendulum",
    "write_mocap",
]
