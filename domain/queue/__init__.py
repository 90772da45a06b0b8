"""Queue jobs: durable units of work, leased by workers."""
