"""The default for tables: members cross-fitted on positives and unlabelled rows, saved without pickle."""
