"""Logs that leave and come: erased, archived, restored, exported, imported."""
