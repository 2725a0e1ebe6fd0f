"""SASL: mechanisms, their users, and the conversation that every connection may have.

A server without users needs nothing from here.
"""
