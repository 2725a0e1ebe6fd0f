"""What a server writes down of itself beside its log: the events of `paddock.storage.events`."""
