"""Views of planning sessions and candidates."""
