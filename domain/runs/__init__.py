"""Execution runs: a schedule plan applied, in simulation or for real."""
