"""Log rooms: logs with many readers."""
