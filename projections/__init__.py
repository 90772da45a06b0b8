"""Pure folds of events into documents that can be rebuilt at any time."""

from statelog.projections.projection import Projection
from statelog.projections.replay import replay

__all__ = ["Projection", "replay"]
