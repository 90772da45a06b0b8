"""Events, lifecycles, aggregates and decisions: pure, and without a clock."""
