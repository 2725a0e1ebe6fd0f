"""Queues: items, their deliveries, and the index that a consumer keeps of them."""
