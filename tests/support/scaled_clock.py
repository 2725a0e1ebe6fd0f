"""The command with a clock for its lease that runs at another rate.

python -m tests.support.scaled_clock 0.9 serve --log etcd://…
"""

from __future__ import annotations

import sys

from paddock.cli.commands import serve
from paddock.cli.main import main

if __name__ == "__main__":
    true_clock, rate = serve._lease_clock, float(sys.argv.pop(1))
    serve._lease_clock = lambda: true_clock() * rate
    main()
