"""The limit of connections by the descriptors that the system allows."""

from __future__ import annotations

import dataclasses
import logging
import resource
from typing import Final

from paddock.server.config.config import ServerConfig

logger: Final = logging.getLogger(__name__)

# Descriptors that are not connections: the log, snapshots, listeners, Python's own.
_DESCRIPTORS_RESERVED: Final = 64


def within_descriptors(config: ServerConfig) -> ServerConfig:
    """Return the settings with no more connections than there may be descriptors.

    A connection over that limit could not even be refused, and neither a snapshot nor the next
    segment of the log could be opened.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    affordable = max(files - _DESCRIPTORS_RESERVED, 1)
    if files == resource.RLIM_INFINITY or 0 < config.max_connections <= affordable:
        return config
    logger.info(
        "at most %d connections at a time, since only %d files may be open", affordable, files
    )
    return dataclasses.replace(config, max_connections=affordable)
