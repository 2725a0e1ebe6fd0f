"""One client's connection, its handshake and its parts, and what all connections share.

What a request means is decided in `paddock.state`.
"""
