"""What a data folder holds, and how a state comes out of it: snapshots, replay, exchange.

It stands on a log and on the state. Serving clients is `paddock.server`.
"""
