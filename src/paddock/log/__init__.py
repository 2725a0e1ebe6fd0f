"""What makes writes durable: a log of batches in one order, and snapshots of single points in it.

This package stores bytes and does not know what they mean.
"""
