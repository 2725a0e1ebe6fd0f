"""A session and its connections: servers, handshakes, authentication, dispatch, expiry.

Import order: `requests` <- `watches` <- `session` <- `operations` <- `client`. Each package imports
those before it, and none after it.
"""
