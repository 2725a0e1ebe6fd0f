"""What the tests share: a raw-wire client that knows nothing of Paddock, and servers for it."""
