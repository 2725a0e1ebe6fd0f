"""Requests: arguments checked, encoded, tracked until the reply, and replies decoded.

Import order: `requests` <- `watches` <- `session` <- `operations` <- `client`. Each package imports
those before it, and none after it.
"""
