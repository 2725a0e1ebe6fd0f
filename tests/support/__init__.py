"""What the tests share: a raw-wire client that knows nothing of Paddock, and the servers to point it at."""
