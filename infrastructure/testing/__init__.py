"""Tools to test lifecycles, aggregates and stores of your own."""

from statelog.infrastructure.testing.lifecycle_test import lifecycle_test
from statelog.infrastructure.testing.scenario import scenario

__all__ = ["lifecycle_test", "scenario"]
