"""Work on a data folder for an operator: backup, check, repair.

It runs beside a server or without one, and changes nothing that a server is using.
"""
