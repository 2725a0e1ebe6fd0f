"""A session and its connections: servers found, handshakes, authentication, expiry.

What is asked in a session is in `paddock.client.requests`.
"""
