"""Views of execution runs."""
