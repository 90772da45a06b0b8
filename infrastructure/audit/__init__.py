"""Checks of a whole log: that nothing in it was changed behind its back."""
