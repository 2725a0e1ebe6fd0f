"""What `paddock bench` does: a bounded load on a service, and what came of it."""
