"""A service whose servers share a log, without a server: its state, and changes to it."""
