"""Running plans: coordinator, engine and work directories."""
