"""Sessions as a server sees them: identity, restrictions, expiry, and what outlives them.

What the log knows of sessions is in `paddock.state.sessions`.
"""
