"""The data folder: its layout, snapshots, the replay of the log, the swap of a state.

It builds on `paddock.log` and `paddock.state`, and does not serve clients.
"""
