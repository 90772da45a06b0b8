"""Where events are kept: the file format and its in-memory twin."""
