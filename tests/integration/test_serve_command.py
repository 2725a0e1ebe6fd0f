"""`paddock serve` as its users meet it: a process, its output, its exit status."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import paddock
from tests.support import requests, wire
from tests.support.command import COMMAND, DEADLINE_S, ended, refusal, serving, success
from tests.support.disks import unwritable


def test_version_is_one_line() -> None:
    assert success("--version") == f"paddock {paddock.__version__}\n"


def test_the_installed_command_is_the_module() -> None:
    script = Path(sys.executable).parent / "paddock"
    result = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert result.stdout == success("--version")


def test_help_lists_the_commands_and_their_options() -> None:
    assert "serve" in success("--help")
    text = success("serve", "--help")
    for option in ("--host", "--port", "--data", "--memory", "--config", "--log-level"):
        assert option in text


def test_without_a_command_the_help_is_shown_with_status_2() -> None:
    result = ended()
    assert (result.status, result.output) == (2, "")
    assert result.errors.startswith("Usage: paddock")


def test_help_and_version_do_not_load_the_server() -> None:
    code = "import sys, paddock.cli.main; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "'click'" in loaded
    assert not re.findall(
        r"'(?:asyncio|uvloop|logging|ssl|paddock\.(?:server|state|log))\b", loaded
    )


def test_it_says_where_it_listens_where_its_data_is_and_what_to_try(tmp_path: Path) -> None:
    data = tmp_path / "some data"
    with serving("--port", "0", "--data", data) as server:
        host, port = server.address
        assert server.greeting[0] == f"Paddock {paddock.__version__} listens on 127.0.0.1:{port}"
        assert server.greeting[1] == f"Its data is in {data}"
        assert f"127.0.0.1:{port}" in server.greeting[2]
        assert f"127.0.0.1:{port}" in server.greeting[3]
        assert len(server.greeting) <= 6
        assert "Zookeeper version" in wire.four_letter_word((host, port), "srvr")


def test_what_it_says_to_try_works(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory") as server:
        shell = server.greeting[2].partition("Try it:")[2]
        result = subprocess.run(
            shell, shell=True, input="ls /\n", capture_output=True, text=True, cwd=tmp_path
        )
        assert result.stdout.endswith("\n[zookeeper]\n"), result.stderr
        command = server.greeting[3].partition("or:")[2]
        result = subprocess.run(command, shell=True, capture_output=True, text=True)
        assert result.stdout == "['zookeeper']\n", result.stderr


def test_a_server_in_memory_says_so_and_leaves_no_files(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory", cwd=tmp_path) as server:
        assert server.greeting[1] == "Everything is kept in memory and ends with this process."
        with wire.connect(server.address) as client:
            assert client.call(requests.create("/a")).err == 0
        assert server.stop()[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_its_data_is_in_the_folder_data_unless_told_otherwise(tmp_path: Path) -> None:
    with serving("--port", "0", cwd=tmp_path) as server:
        assert server.greeting[1] == f"Its data is in {tmp_path / 'data'}"
        assert (tmp_path / "data").is_dir()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_status_0_and_nothing_is_lost(tmp_path: Path, number: int) -> None:
    with serving("--port", "0", "--data", tmp_path) as server:
        with wire.connect(server.address) as client:
            assert client.call(requests.create("/kept", b"data")).err == 0
            status, errors = server.stop(number)
        assert status == 0
        assert "Traceback" not in errors
    with serving("--port", "0", "--data", tmp_path) as server:
        with wire.connect(server.address) as client:
            assert client.call(requests.get_data("/kept")).err == 0


def test_the_file_is_followed_and_options_beat_it(tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(
        f"clientPort=1\nclientPortAddress=127.0.0.2\ndataDir={tmp_path}/from-file\n"
        "tickTime=500\n4lw.commands.whitelist=ruok\n"
    )
    with serving("--config", config, "--port", "0") as server:
        assert server.address[0] == "127.0.0.2"
        assert server.address[1] > 1
        assert server.greeting[1] == f"Its data is in {tmp_path}/from-file"
        assert wire.four_letter_word(server.address, "ruok") == "imok"
        with wire.connect(server.address, timeout_ms=3_600_000) as client:
            assert client.handshake.timeout_ms == 10_000
    data = tmp_path / "from-option"
    with serving(
        "--config", config, "--port", "0", "--host", "127.0.0.1", "--data", data
    ) as server:
        assert server.address[0] == "127.0.0.1"
        assert server.greeting[1] == f"Its data is in {data}"
    with serving("--config", config, "--port", "0", "--memory") as server:
        assert "memory" in server.greeting[1]


def test_each_key_that_is_not_used_gets_one_warning_line(tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text("tickTime=2000\ninitLimit=10\nserver.1=one:2888:3888\n")
    with serving("--config", config, "--port", "0", "--memory", "--log-level", "error") as server:
        status, errors = server.stop()
    assert status == 0
    first, second = errors.splitlines()
    unused = "is not used by this server: it runs alone, ensembles are not run here"
    assert first == f"paddock: warning: {config}:2: key 'initLimit' {unused}"
    assert second == f"paddock: warning: {config}:3: key 'server.1' {unused}"


def test_a_setting_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDOCK_DATA", str(tmp_path / "here"))
    monkeypatch.setenv("PADDOCK_FOUR_LETTER_WORDS", "*")
    monkeypatch.setenv("PADDOCK_PORT", "1")
    with serving("--port", "0") as server:
        assert server.greeting[1] == f"Its data is in {tmp_path / 'here'}"
        assert wire.four_letter_word(server.address, "ruok") == "imok"


def test_a_log_on_another_disk_is_found_again_without_the_option(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "disk"
    with serving("--port", "0", "--data", data, "--data-log", log) as server:
        with wire.connect(server.address) as client:
            assert client.call(requests.create("/kept")).err == 0
        server.process.kill()
        server.process.wait()
    assert list((log / "log").iterdir())
    with serving("--port", "0", "--data", data) as server, wire.connect(server.address) as client:
        assert client.call(requests.exists("/kept")).err == 0


def test_a_wrong_value_in_the_file_is_one_line_with_file_line_and_key(tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text("# a comment\nclientPort=many\n")
    line = refusal("serve", "--config", config, status=2)
    assert line == f"{config}:2: clientPort = 'many': expected a port, 0 to 65535"


def test_contradictory_values_in_the_file_are_one_line(tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text("minSessionTimeout=9000\nmaxSessionTimeout=8000\n")
    assert refusal("serve", "--config", config, status=2).startswith(f"{config}:2: ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["serve", "--port", "70000"], "--port"),
        (["serve", "--port", "x"], "--port = 'x': expected a port, 0 to 65535"),
        (["serve", "--log-level", "loud"], "--log-level"),
        (["serve", "--memory", "--data", "d"], "--data and --memory exclude each other"),
        (["serve", "--nothing"], "--nothing"),
        (["serve", "extra"], "extra"),
        (["serve", "--config", "missing.cfg"], "missing.cfg: cannot be read"),
        (["swerve"], "swerve"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(arguments: list[str], named: str) -> None:
    assert named in refusal(*arguments, status=2)


def test_a_port_that_is_taken_is_one_line_and_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal("serve", "--memory", "--port", str(port), status=1)
    assert line == f"cannot listen on 127.0.0.1:{port}: the port is taken by another program"


def test_a_port_cannot_be_that_of_the_admin_server_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    result = ended("serve", "--memory", "--port", port, "--admin-port", port)
    assert (result.status, result.output) == (1, "")
    assert result.errors.splitlines()[-1] == (
        f"paddock: cannot listen on 127.0.0.1:{port}: the port is taken by another program"
    )


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_it_serves_and_stops_with_closed_standard_streams(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    data, notices = tmp_path / "data", tmp_path / "notices"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(notices))
        systemd.settimeout(DEADLINE_S)
        closing = " ".join(f"{number}>&-" for number in closed)
        serve = [*COMMAND, "serve", "--port", "0", "--data", str(data)]
        process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {closing}', "sh", *serve],
            env={**os.environ, "NOTIFY_SOCKET": str(notices)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while b"READY=1" not in systemd.recv(4096):
                pass
            process.terminate()
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()
            process.wait(DEADLINE_S)


def test_the_variable_of_the_config_file_is_its_option(tmp_path: Path) -> None:
    file = tmp_path / "zoo.cfg"
    file.write_text("tickTime=x\n")
    environment = {**os.environ, "PADDOCK_CONFIG": str(file)}
    result = subprocess.run(
        [*COMMAND, "serve", "--memory"], env=environment, capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (
        2,
        f"paddock: {file}:1: tickTime = 'x': expected milliseconds, 1 or more\n",
    )


def test_an_address_of_another_machine_is_one_line_and_status_1() -> None:
    line = refusal("serve", "--memory", "--host", "192.0.2.1", "--port", "0", status=1)
    assert line == "cannot listen on 192.0.2.1:0: it is no address of this machine"


def test_a_data_folder_that_is_a_file_is_one_line_and_status_1(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    line = refusal("serve", "--port", "0", "--data", file, status=1)
    assert line == f"data folder {file}: is not a folder"


def test_a_data_folder_that_cannot_be_written_is_one_line_and_status_1(tmp_path: Path) -> None:
    with unwritable(tmp_path):
        assert str(tmp_path) in refusal("serve", "--port", "0", "--data", tmp_path, status=1)


def test_a_data_folder_on_a_file_system_without_writing_is_one_line_and_status_1() -> None:
    assert "/proc/data" in refusal("serve", "--port", "0", "--data", "/proc/data", status=1)


def test_a_data_folder_in_use_is_one_line_and_status_1_and_its_owner_goes_on(
    tmp_path: Path,
) -> None:
    with serving("--port", "0", "--data", tmp_path) as server:
        line = refusal("serve", "--port", "0", "--data", tmp_path, status=1)
        assert str(tmp_path) in line
        assert "in use" in line
        with wire.connect(server.address) as client:
            assert client.call(requests.create("/a")).err == 0


def test_the_log_level_decides_what_is_logged(tmp_path: Path) -> None:
    sizes = []
    for level in ("error", "debug"):
        with serving("--port", "0", "--memory", "--log-level", level) as server:
            with wire.connect(server.address) as client:
                client.call(requests.create("/a"))
            status, errors = server.stop()
            assert status == 0
            sizes.append(len(errors))
    assert sizes[0] == 0 < sizes[1]
