"""The default for tables: members cross-fitted on positives and unlabelled rows, weighted, saved without pickle."""

from punce.models.tabular.model import MEMBERS, TabularPU

__all__ = ["MEMBERS", "TabularPU"]
