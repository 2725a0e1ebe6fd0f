"""The acts, in the order in which they are played."""

from typing import Final

from paddock.cli.demo.acts.barrier import BARRIER
from paddock.cli.demo.acts.discovery import DISCOVERY
from paddock.cli.demo.acts.election import ELECTION
from paddock.cli.demo.acts.lock import LOCK
from paddock.cli.demo.acts.queue import QUEUE
from paddock.cli.demo.stage import Act

ACTS: Final[tuple[Act, ...]] = (ELECTION, LOCK, DISCOVERY, QUEUE, BARRIER)
