"""A deterministic world in one process: servers, clients and faults in virtual time, and its judge.

Nothing here is real but the code under test: processes, clocks, the network and disks are simulated
from one seed. The same seed gives the same trace, byte for byte.
"""
