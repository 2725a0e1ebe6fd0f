"""Whom a server may replace when it starts."""

import os
import shutil
from pathlib import Path

import pytest

from paddock.server.cluster import former_boot
from paddock.server.cluster.former_boot import FormerBoot, new_boot
from paddock.state.roster import Member, Roster

BOOT = bytes(range(8))


def test_the_next_server_on_the_folder_finds_the_boot(tmp_path: Path) -> None:
    FormerBoot(tmp_path, b"machine").write(BOOT)
    assert FormerBoot(tmp_path, b"machine").read() == BOOT


def test_a_boot_that_has_left_is_not_found(tmp_path: Path) -> None:
    former = FormerBoot(tmp_path, b"machine")
    former.write(BOOT)
    former.clear()
    former.clear()
    assert FormerBoot(tmp_path, b"machine").read() == b""


@pytest.mark.parametrize("machine", [b"another", b""])
def test_a_folder_that_was_copied_to_another_machine_replaces_nobody(
    tmp_path: Path, machine: bytes
) -> None:
    FormerBoot(tmp_path, b"machine").write(BOOT)
    assert FormerBoot(tmp_path, machine).read() == b""


@pytest.mark.parametrize("content", [b"", b"machine", b"xyz machine", b"00", b"00 xyz machine"])
def test_a_damaged_file_replaces_nobody(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "boot").write_bytes(content)
    assert FormerBoot(tmp_path, b"machine").read() == b""


def test_without_a_folder_nothing_is_kept() -> None:
    former = FormerBoot(None, b"machine")
    former.write(BOOT)
    former.clear()
    assert former.read() == b""


def test_a_copy_of_the_folder_replaces_nobody(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    FormerBoot(tmp_path / "one", b"machine").write(BOOT)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert FormerBoot(tmp_path / "two", b"machine").read() == b""
    assert FormerBoot(tmp_path / "one", b"machine").read() == BOOT


def test_a_clone_of_the_file_system_replaces_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FormerBoot(tmp_path, b"machine").write(BOOT)
    here = tmp_path.stat()
    clone = os.stat_result((here.st_mode, here.st_ino, here.st_dev + 1, *here[3:]))
    monkeypatch.setattr(Path, "stat", lambda self: clone)
    assert FormerBoot(tmp_path, b"machine").read() == b""


def test_a_name_that_a_boot_has_had_is_drawn_again() -> None:
    roster = Roster(b"service")
    roster.members[BOOT] = Member(1, BOOT, 1, 1, 3, "", "", "", 0, 0)
    roster.ended[b"ended..."] = 1
    drawn = iter((BOOT, b"ended...", b"another."))
    assert new_boot(roster, lambda _: next(drawn)) == b"another."


@pytest.mark.parametrize("machine_id", [None, b"", b"uninitialized\n"])
def test_without_a_machine_id_it_is_the_machine_until_that_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine_id: bytes | None
) -> None:
    path, boot_id = tmp_path / "machine-id", tmp_path / "boot_id"
    monkeypatch.setattr(former_boot, "_IDENTITIES", (path, boot_id))
    if machine_id is not None:
        path.write_bytes(machine_id)
    boot_id.write_text("4f3c2b1a-0123-4567-89ab-0123456789ab\n")
    FormerBoot(tmp_path).write(BOOT)
    assert FormerBoot(tmp_path).read() == BOOT
    boot_id.write_text("00000000-0123-4567-89ab-0123456789ab\n")
    assert FormerBoot(tmp_path).read() == b""
    boot_id.unlink()
    FormerBoot(tmp_path).write(BOOT)
    assert FormerBoot(tmp_path).read() == b""
