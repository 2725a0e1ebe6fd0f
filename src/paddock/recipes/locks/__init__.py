"""Locks and their kin: everything that somebody holds, and others wait for in line."""
