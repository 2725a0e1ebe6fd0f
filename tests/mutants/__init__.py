"""Planted bugs: mutations of the rules that keep Paddock safe, each found by the campaign.

A mutation is a small change of the code that ships. It is made to a copy of the source, and the
campaign of simulated worlds (`paddock.testing.simulation.campaign`), unchanged, runs on that copy
until a seed fails. A mutation that survives is a check that is missing in the worlds or the judge.

    python -m tests.mutants                 # all of them, and writes the table
    python -m tests.mutants --missing       # those that are not in the table yet
    python -m tests.mutants --only NAME...  # some, and writes nothing
"""
