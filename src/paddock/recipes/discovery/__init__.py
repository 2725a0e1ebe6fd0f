"""Service discovery: registration, lookup, and a choice among instances."""
