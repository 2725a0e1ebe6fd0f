"""Locks of every kind, and elections: one line of contenders, and grants with fencing tokens."""
