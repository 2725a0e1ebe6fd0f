"""Which tests of the suite run on several servers, too: most of them, some in every run.

Those are an ensemble of Apache ZooKeeper, and a cluster of Paddock. There `server` is a follower,
and all clients of a test are its clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class When(Enum):
    """In which runs a test runs on several servers."""

    EVERY_RUN = auto()
    LONG_RUNS = auto()
    NEVER = auto()


@dataclass(frozen=True, slots=True)
class Lists:
    """What runs when on one kind of several servers."""

    #: Modules that run on it in `make test`; all others do in `make test-all`.
    in_every_run: frozenset[str]
    #: Modules and tests (`module::test`) that never do, and why.
    left_out: Mapping[str, str]

    def when(self, module: str, test: str) -> When:
        """Tell in which runs a test runs on it."""
        if module in self.left_out or f"{module}::{test}" in self.left_out:
            return When.NEVER
        return When.EVERY_RUN if module in self.in_every_run else When.LONG_RUNS


_IN_EVERY_RUN_ON_APACHE: Final = frozenset(
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

_IN_EVERY_RUN_ON_PADDOCK: Final = frozenset(
    {
        "test_kazoo_locks",
        "test_multi",
        "test_restart",
        "test_sessions",
        "test_set_watches",
        "test_watches",
        "test_zxid",
    }
)

_OWN_SERVERS = "its servers are of its own"
_OTHERS_COUNT = "the other servers have its session, and count while it restarts"
_LONE = "it tells how a server describes itself that is alone"
_HANGS = "a follower that sends on a request which the leader cannot decode waits for ever"
_ENDS = "a follower ends when it gets it, and again at each start"

_LEFT_OUT_ON_APACHE: Final = {
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

_LEFT_OUT_ON_PADDOCK: Final = {
    "test_four_letter_words::test_conf_shows_the_settings": "its log is not in a folder of its own",
    "test_four_letter_words::test_mntr_is_lines_of_key_tab_value": _LONE,
    "test_four_letter_words::test_srvr_is_a_version_and_a_summary": _LONE,
    "test_four_letter_words::test_stat_adds_the_clients": _LONE,
    "test_kazoo::test_four_letter_words": _LONE,
    "test_restart::test_a_session_nobody_returns_to_expires_after_a_restart": _OTHERS_COUNT,
    "test_zkcli": _LONE,
    "test_zookeeper_subtree::test_the_configuration_is_read_only_and_empty": "it lists the servers",
}

#: By the name of the service.
SERVICES: Final = {
    "ensemble": Lists(_IN_EVERY_RUN_ON_APACHE, _LEFT_OUT_ON_APACHE),
    "cluster": Lists(_IN_EVERY_RUN_ON_PADDOCK, _LEFT_OUT_ON_PADDOCK),
}
