"""The edge: journal, views, stores and everything that has a clock."""
