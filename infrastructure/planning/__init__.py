"""Planning sessions at work: creation, the coordinator, selection."""
