"""Requests: checked, encoded, sent, matched with their replies, and composed calls.

How a connection comes about is in `paddock.client.session`.
"""
