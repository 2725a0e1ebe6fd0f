"""The configuration of a server: its settings, their sources, their parsers.

Nothing here opens a port or a data folder.
"""
