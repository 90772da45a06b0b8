"""What an audit checks of registered definitions: each is registered once, and stays as it is."""

from __future__ import annotations

from typing import Final

from statelog.domain.rulebook import Audited, Rulebook
from statelog.domain.workflows.definitions import KINDS

RULEBOOK: Final = Rulebook(tuple(Audited(kind.aggregate) for kind in KINDS.values()))
"""Environments, resources, scopes, topologies, workflows and schedule plans."""
