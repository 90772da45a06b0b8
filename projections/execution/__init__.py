"""Documents about plans: the plan itself, its status, its newest result."""
