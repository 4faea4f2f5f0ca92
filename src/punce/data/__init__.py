"""A user's own rows: read, checked, and PU or PNU labels simulated. Benchmark sets are in `punce.datasets`."""

from __future__ import annotations

from punce.columns.encoder import EncodedTable, TableEncoder
from punce.data.check import check
from punce.data.findings import DataCheck, DataFinding
from punce.data.read import read, read_at_most, stream
from punce.data.simulate import PUSample, biased_propensity, simulate_pnu, simulate_pu
from punce.data.user_data import DataStream, UserData
from punce.datasets import DATASETS, Benchmark, Dataset, MissingFilesError, Part, find_benchmark, load

__all__ = [
    "DATASETS",
    "Benchmark",
    "DataCheck",
    "DataFinding",
    "DataStream",
    "Dataset",
    "EncodedTable",
    "MissingFilesError",
    "PUSample",
    "Part",
    "TableEncoder",
    "UserData",
    "biased_propensity",
    "check",
    "find_benchmark",
    "load",
    "read",
    "read_at_most",
    "simulate_pnu",
    "simulate_pu",
    "stream",
]
