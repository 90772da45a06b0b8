"""Execution runs at work: submission, the simulator, the supervisor of real activities."""
