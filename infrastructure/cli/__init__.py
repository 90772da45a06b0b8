"""The command line `statelog`: commands import what is heavy only when they run."""
