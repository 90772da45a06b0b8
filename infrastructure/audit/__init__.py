"""Checks of a whole log: that all of it was allowed, and nothing was changed behind its back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.infrastructure.audit.checkpoint import Checkpoint, parse_checkpoint
    from statelog.infrastructure.audit.conformance import Audit, audit
    from statelog.infrastructure.audit.findings import Finding
    from statelog.infrastructure.audit.sealing import Verdict, seal, verify
    from statelog.infrastructure.audit.signing import Signed, check_signature
    from statelog.infrastructure.audit.violations import Violation

_HOMES = {
    "Audit": "conformance",
    "Checkpoint": "checkpoint",
    "Finding": "findings",
    "Signed": "signing",
    "Verdict": "sealing",
    "Violation": "violations",
    "audit": "conformance",
    "check_signature": "signing",
    "parse_checkpoint": "checkpoint",
    "seal": "sealing",
    "verify": "sealing",
}

__all__ = [
    "Audit",
    "Checkpoint",
    "Finding",
    "Signed",
    "Verdict",
    "Violation",
    "audit",
    "check_signature",
    "parse_checkpoint",
    "seal",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: most need a journal, which takes time."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
