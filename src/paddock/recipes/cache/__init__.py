"""A part of the tree in memory."""
