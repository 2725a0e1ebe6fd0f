"""The fuzzing tests for as long as one likes: `python -m tests.fuzz --seconds 600`.

They run round after round, each from a new random seed and with more examples than in `make test`,
until the time is over. The first failure ends it; what it prints replays it.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time

#: How many times as many examples a round tries: so many that it takes about a minute.
FACTOR = 3


def run_round(seed: int, factor: int) -> bool:
    """Run all of them once, and tell whether they held."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-x"]
    command += ["tests/property", "-k", "fuzz", f"--hypothesis-seed={seed}"]
    environment = {**os.environ, "PADDOCK_PROPERTY_FACTOR": str(factor)}
    print(f"\nseed {seed}: PADDOCK_PROPERTY_FACTOR={factor} {' '.join(command[1:])}", flush=True)
    return subprocess.run(command, env=environment).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="run one round from this seed only")
    parser.add_argument("--factor", type=int, default=FACTOR, help="times as many examples")
    options = parser.parse_args()
    if options.seed is not None:
        return 0 if run_round(options.seed, options.factor) else 1
    end = time.monotonic() + options.seconds
    rounds = 0
    while time.monotonic() < end:
        seed = secrets.randbits(32)
        if not run_round(seed, options.factor):
            print(f"\nfailed; again with: python -m tests.fuzz --seed {seed}")
            return 1
        rounds += 1
    print(f"\n{rounds} rounds, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
