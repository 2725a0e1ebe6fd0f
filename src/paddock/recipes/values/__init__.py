"""Single nodes with a value: shared values, counters, configuration, names."""
