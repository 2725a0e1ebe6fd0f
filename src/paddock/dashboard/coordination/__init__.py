"""Coordination: recipes recognised by the nodes that they leave, and who waits for whom.

`recognition` is a pure function of nodes; `deadlocks` is one of recipes; `coordination` reads the
nodes from a service, a bounded number at a time, and again only what has changed.
"""
