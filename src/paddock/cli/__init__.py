"""The command line: it sits on top and may use everything but `testing`."""
