"""The server: sockets, sessions and the clock around the pure state and its log."""
