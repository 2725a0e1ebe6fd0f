"""One client's connection and its parts, and the limits that all connections share.

What a request means is decided in `paddock.state`.
"""
