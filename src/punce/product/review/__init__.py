"""Rows for people to judge, and what their verdicts show."""
