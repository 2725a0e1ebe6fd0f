"""Which admin commands on all data a server refuses, and what it says then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddock.server.admin.data_commands import RESTORE, SNAPSHOT, DataCommands
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.admin.refusal import RefusedError
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (RESTORE, "with paddock restore FILE etcd://…/NEW, and"),
        (SNAPSHOT, "with paddock backup etcd://127.0.0.1:2379/shop FILE"),
    ],
)
@pytest.mark.parametrize("has_folder", [True, False])
def test_a_server_that_shares_a_log_says_what_to_do_in_etcd_instead(
    tmp_path: Path, command: str, says: str, has_folder: bool
) -> None:
    config = ServerConfig(
        shared_log=LogUrl(("127.0.0.1:2379",), "shop"),
        data_directory=tmp_path if has_folder else None,
    )
    commands = DataCommands(config, None, AdminLimits(0))
    with pytest.raises(RefusedError, match=re.escape(says)) as refused:
        commands.check(command)
    assert refused.value.status == 503
