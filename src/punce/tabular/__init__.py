"""The default for tables: members cross-fitted on positives and unlabelled rows, averaged, saved without pickle."""

from punce.tabular.calibrate import PUCalibrator
from punce.tabular.members import MEMBERS
from punce.tabular.model import TabularPU

__all__ = ["MEMBERS", "PUCalibrator", "TabularPU"]
