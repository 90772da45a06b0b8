"""Runtimes behind one small port: how an activity is started, inspected and stopped."""
