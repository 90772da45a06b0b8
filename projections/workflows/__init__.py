"""Views of registered definitions and schedule plans."""
