"""Commands on the past of a service."""
