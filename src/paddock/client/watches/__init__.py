"""Watches of one session: which watchers are called, and what the server holds for them.

Import order: `requests` <- `watches` <- `session` <- `operations` <- `client`. Each package imports
those before it, and none after it.
"""
