"""The queue: delivery, acknowledgement, dead letters."""
