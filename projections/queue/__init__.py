"""Views of queue jobs."""
