"""Tasks: clients that submit them, a master that assigns them, workers that do them."""
