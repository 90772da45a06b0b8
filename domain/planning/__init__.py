"""Planning sessions: algorithms compared over frozen inputs, their candidates, the choice."""
