"""Pure folds of events into documents that can be rebuilt at any time."""
