"""Event-sourced state machines, and a plan-execution system built on them."""

__version__ = "0.1.0"
