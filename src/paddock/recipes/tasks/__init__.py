"""Tasks: a master that assigns them, workers that do them, clients that wait."""
