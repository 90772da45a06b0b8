"""Scheduling algorithms: pure generators of schedule plans."""
