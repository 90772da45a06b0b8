"""Execution runs: a schedule plan applied, in simulation or for real."""

from statelog.domain.runs.simulate import simulate

__all__ = ["simulate"]
