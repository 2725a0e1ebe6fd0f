"""Maintenance of a data folder: backup, check, repair.

It runs beside a server or without one, and changes no file that a server uses.
"""
