"""Plans, slots and attempts: what may happen to them, and what happened."""
