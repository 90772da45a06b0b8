"""Tools to test lifecycles, aggregates and stores of your own."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from statelog.infrastructure.testing.mutants import Mutant, mutants
from statelog.infrastructure.testing.purity import assert_pure
from statelog.infrastructure.testing.scenario import scenario
from statelog.infrastructure.testing.walk import walk
from statelog.infrastructure.testing.world import World

if TYPE_CHECKING:
    from statelog.infrastructure.testing.contracts import JournalContract
    from statelog.infrastructure.testing.golden import golden_logs, golden_test, record_golden
    from statelog.infrastructure.testing.shapes import shapes_test
    from statelog.infrastructure.testing.views_contract import ViewsContract

_HOMES = {
    "JournalContract": "contracts",
    "ViewsContract": "views_contract",
    "golden_logs": "golden",
    "golden_test": "golden",
    "record_golden": "golden",
    "shapes_test": "shapes",
}

__all__ = [
    "Action",
    "JournalContract",
    "Mutant",
    "ViewsContract",
    "Violation",
    "World",
    "always",
    "assert_pure",
    "each_move",
    "explore",
    "golden_logs",
    "golden_test",
    "lifecycle_test",
    "mutants",
    "never_stuck",
    "record_golden",
    "scenario",
    "shapes_test",
    "sometimes",
    "walk",
]


def __getattr__(name: str) -> Any:
    """Import what needs more than the rest of the kit when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
