"""Explanations: what became of a session, a lock, a node, and why.

They are made of the steps of a history and of the events that servers have written beside their
logs (`paddock.storage.events`). What neither of them says is not guessed.
"""
