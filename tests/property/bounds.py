"""How many examples are tried: few in `make test`, many on request.

`PADDOCK_PROPERTY_FACTOR=100 pytest tests/property` tries a hundred times as many.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("PADDOCK_PROPERTY_FACTOR", "1"))


def examples(count: int) -> settings:
    """Return the settings for `count` examples in the bounded run."""
    return settings(
        max_examples=count * FACTOR,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
