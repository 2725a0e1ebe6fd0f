"""A server as one of several on a shared log: joining, leases, outages, and the work on duty.

What the log knows of members is in `paddock.state.roster`.
"""
