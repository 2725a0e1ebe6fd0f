"""`paddock serve` as its users meet it: a process, its output, its exit status."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import paddock
from paddock.cli.version import is_compiled
from tests.support import requests, wire
from tests.support.command import COMMAND, DEADLINE_S, ended, refusal, serving, success
from tests.support.disks import unwritable


def test_version_is_one_line() -> None:
    built = "compiled" if is_compiled() else "pure Python"
    assert success("--version") == f"paddock {paddock.__version__}, {built}\n"


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
        for line, said in zip(server.greeting[2:6], ("shell", "status", "ls", "sync"), strict=True):
            assert said in line
            assert f"127.0.0.1:{port}" in line
        assert len(server.greeting) <= 7
        assert "Zookeeper version" in wire.four_letter_word((host, port), "srvr")


def test_what_it_says_to_try_works(tmp_path: Path) -> None:
    with serving("--port", "0", "--memory", cwd=tmp_path) as server:
        lines = [line.removeprefix("Try it:").strip() for line in server.greeting[2:5]]
        said = [_typed(line, input="ls /\n", cwd=tmp_path) for line in lines]
        assert "[zookeeper]" in said[0]
        assert "standalone" in said[1]
        assert said[2] == "zookeeper\n"
        python = server.greeting[5].removeprefix("in Python:").strip()
        code = f"import paddock\n{python}"
        assert _typed(shlex.join([sys.executable, "-c", code])) == "['zookeeper']\n"


def _typed(line: str, *, input: str = "", cwd: Path | None = None) -> str:
    """Run a line in a shell, and return its output."""
    result = subprocess.run(
        line, shell=True, input=input, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert result.returncode == 0, result
    return result.stdout


def test_what_it_says_to_try_works_where_no_environment_is_activated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    # As in a checkout: the environment is below the folder that one is in.
    folder = Path(sys.executable).parent.parent.parent
    with serving("--port", "0", "--memory", cwd=folder) as server:
        line = server.greeting[4].strip()
        assert line.startswith(str(Path(sys.executable).with_name("paddock").relative_to(folder)))
        assert _typed(line, cwd=folder) == "zookeeper\n"


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
    unused = "is not used by this server: it has no links to other servers"
    assert first == f"paddock: warning: {config}:2: key 'initLimit' {unused}"
    assert second == f"paddock: warning: {config}:3: key 'server.1' {unused}"


def test_a_list_of_several_servers_stops_the_start_unless_it_is_to_serve_alone(
    tmp_path: Path,
) -> None:
    config, data = tmp_path / "zoo.cfg", tmp_path / "data"
    config.write_text("server.1=one:2888:3888\nserver.2=two:2888:3888\n")
    said = refusal("serve", "--config", config, "--port", "0", "--data", data, status=2)
    assert f"{config}:1: server.1, server.2 list 2 servers" in said
    assert "--standalone" in said
    assert not data.exists()
    with serving("--config", config, "--port", "0", "--data", data, "--standalone") as server:
        assert wire.four_letter_word(server.address, "srvr")


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


def test_dashes_are_not_advised_where_no_argument_is_data() -> None:
    assert refusal("serve", "--nothing", status=2) == "No such option '--nothing'."


def test_a_port_that_is_taken_is_one_line_and_status_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal("serve", "--memory", "--port", str(port), status=1)
    assert line == f"cannot listen on 127.0.0.1:{port}: the port is taken by another program"


@pytest.mark.parametrize("option", ["--port", "--admin-port"])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_port_that_is_taken_leaves_no_folder_behind(
    tmp_path: Path, option: str, is_new: bool
) -> None:
    data = tmp_path / "above" / "data"
    if not is_new:
        data.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {"--port": "0", option: str(taken.getsockname()[1])}
        options = [text for each in ports.items() for text in each]
        assert "is taken" in refusal("serve", "--data", data, *options, status=1)
    assert list(tmp_path.rglob("*")) == ([] if is_new else [data.parent, data])


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


def test_a_server_that_waits_for_its_log_can_be_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"etcd://127.0.0.1:{free.getsockname()[1]}/service"
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--log", nowhere],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        while "etcd does not answer" not in (line := process.stderr.readline()):
            assert line, "it ended by itself"
        process.terminate()
        _, rest = process.communicate(timeout=DEADLINE_S)
        # A start that fails has another status.
        assert process.returncode == 0
        assert "Traceback" not in rest
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
        named = f"data folder {tmp_path}: in use by another server (process {server.process.pid})"
        assert line == (
            f"{named}; --data takes another folder, and --port another port (with make: make serve"
            " PORT=2182 DATA=/tmp/demo)"
        )
        with wire.connect(server.address) as client:
            assert client.call(requests.create("/a")).err == 0


def test_a_server_that_runs_already_is_named_before_its_port_is_complained_of(
    tmp_path: Path,
) -> None:
    with serving("--port", "0", "--data", tmp_path) as server:
        port = str(server.address[1])
        line = refusal("serve", "--port", port, "--data", tmp_path, status=1)
        assert f"(process {server.process.pid})" in line


@pytest.mark.parametrize("way", ["option", "file", "log in the file"])
def test_a_data_folder_of_apache_is_refused_with_what_takes_it_over(
    tmp_path: Path, way: str
) -> None:
    data, config = tmp_path / "apache", tmp_path / "zoo.cfg"
    (data / "version-2").mkdir(parents=True)
    (data / "version-2" / "log.1").touch()
    config.write_text(f"dataDir={data}\nclientPort=0\n")
    given: list[str | Path] = ["--config", config]
    taken_over = str(data)
    if way == "option":
        given = ["--port", "0", "--data", data]
    elif way == "log in the file":
        config.write_text(f"dataDir={tmp_path}/none\ndataLogDir={data}\nclientPort=0\n")
        taken_over = f"--log-dir {data} {tmp_path}/none"
    line = refusal("serve", *given, status=1)
    assert "holds data of Apache ZooKeeper" in line
    assert line.endswith(f"run: paddock upgrade {taken_over} NEW_FOLDER")
    assert sorted(tmp_path.rglob("*")) == [
        *(data, data / "version-2", data / "version-2" / "log.1", config)
    ]


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    line = refusal("serve", "--port", "0", "--data", tmp_path, status=1)
    assert line.startswith(f"data folder {tmp_path}: is neither empty nor ")
    assert "'photo.jpg'" in line
    assert list(tmp_path.iterdir()) == [tmp_path / "photo.jpg"]


def test_folders_are_shown_without_dots(tmp_path: Path) -> None:
    (tmp_path / "near").mkdir()
    with serving("--port", "0", "--data", tmp_path / "near" / ".." / "data") as server:
        assert server.greeting[1] == f"Its data is in {tmp_path}/data"
        line = refusal("serve", "--port", "0", "--data", f"{tmp_path}/near/../data", status=1)
        assert line.startswith(f"data folder {tmp_path}/data: in use")


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
