"""Tools to test lifecycles, aggregates and stores of your own."""

from statelog.infrastructure.testing.explore import explore
from statelog.infrastructure.testing.lifecycle_test import lifecycle_test
from statelog.infrastructure.testing.model import (
    Action,
    Violation,
    always,
    each_move,
    never_stuck,
    sometimes,
)
from statelog.infrastructure.testing.scenario import scenario
from statelog.infrastructure.testing.walk import walk
from statelog.infrastructure.testing.world import World

__all__ = [
    "Action",
    "Violation",
    "World",
    "always",
    "each_move",
    "explore",
    "lifecycle_test",
    "never_stuck",
    "scenario",
    "sometimes",
    "walk",
]
