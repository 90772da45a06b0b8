"""Definitions: registered, imported, read."""
