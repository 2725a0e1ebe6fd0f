"""The cache: a part of the tree in memory, and immutable snapshots of it."""
