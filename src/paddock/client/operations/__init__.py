"""Calls of the client: single requests, and calls composed of several.

Import order: `requests` <- `watches` <- `session` <- `operations` <- `client`. Each package imports
those before it, and none after it. `results` and `states` are records that all of them may import.
"""
