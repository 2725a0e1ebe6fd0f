"""Paddock's tests."""
