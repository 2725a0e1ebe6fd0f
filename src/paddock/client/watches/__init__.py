"""Watches: one-time, persistent and recursive ones, their events, and streams of states.

They survive reconnects; the server's part is told apart in `served`.
"""
