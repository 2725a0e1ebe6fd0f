"""Recipes whose state is the data of a node: shared values, counters, configuration, names."""
