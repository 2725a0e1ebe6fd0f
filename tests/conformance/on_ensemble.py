"""Which tests of the suite run on an ensemble, too: most of them, some in every run.

There `server` is a follower of the ensemble, and all clients of a test are its clients.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class When(Enum):
    """In which runs a test runs on the ensemble."""

    EVERY_RUN = auto()
    LONG_RUNS = auto()
    NEVER = auto()


#: Modules that run on it in `make test`; all others do in `make test-all`.
IN_EVERY_RUN: Final = frozenset(
    {
        "test_create",
        "test_data",
        "test_delete",
        "test_multi",
        "test_sessions",
        "test_set_watches",
        "test_watches",
        "test_zxid",
    }
)

_OWN_SERVERS = "its servers are of its own"
_LONE = "it tells how a server describes itself that is alone"
_HANGS = "a follower that sends on a request which the leader cannot decode waits for ever"
_ENDS = "a follower ends when it gets it, and again at each start"

#: Modules and tests (`module::test`) that never do, and why.
LEFT_OUT: Final = {
    "test_audit": _OWN_SERVERS,
    "test_c_client": _OWN_SERVERS,
    "test_curator": _OWN_SERVERS,
    "test_quota_enforced": _OWN_SERVERS,
    "test_restart": _OWN_SERVERS,
    "test_settings": _OWN_SERVERS,
    "test_zookeeper_subtree": _OWN_SERVERS,
    "test_errors::test_a_body_cut_anywhere_is_a_marshalling_error": _HANGS,
    "test_four_letter_words": _LONE,
    "test_kazoo::test_four_letter_words": _LONE,
    "test_multi::test_a_null_path_in_a_multi_is_a_marshalling_error": _HANGS,
    "test_words_of_sessions::test_dump_shows_sessions_ephemerals_and_connections": _LONE,
    "test_zkcli": _LONE,
    "test_zxid::test_a_lone_check_that_succeeds": _ENDS,
}


def when(module: str, test: str) -> When:
    """Tell in which runs a test runs on the ensemble."""
    if module in LEFT_OUT or f"{module}::{test}" in LEFT_OUT:
        return When.NEVER
    return When.EVERY_RUN if module in IN_EVERY_RUN else When.LONG_RUNS
