"""The smoke test of releases passes what keeps data, and notices what does not."""

from pathlib import Path

import pytest

from tools.smoke import smoke

# A command that keeps one node in the file `data`, and what becomes of it when a server starts.
FAKE = """\
#!/bin/sh
case "$1" in
    --version) echo 'paddock 9, compiled' ;;
    serve)
        START
        trap 'exit STATUS' TERM
        echo 'Paddock listens on 127.0.0.1:1'
        while :; do sleep 0.01; done ;;
    create) echo kept > data ;;
    get) cat data ;;
    shell) read line; echo "$line"; SHELL data ;;
esac
"""


def installed(
    folder: Path, start: str = ":", status: int = 0, shell: str = "cat", program: str = "token 1"
) -> Path:
    """Write a command that stands in for an installed Paddock; return its folder."""
    text = FAKE.replace("START", start).replace("STATUS", str(status)).replace("SHELL", shell)
    for name, script in {"paddock": text, "python": f"#!/bin/sh\necho {program}\n"}.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return folder


def test_what_works_is_named_by_its_version(tmp_path: Path) -> None:
    assert smoke(installed(tmp_path)) == "paddock 9, compiled"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"start": "rm -f data"}, "get .* status 1"),
        ({"start": "if [ -e data ]; then echo lost > data; fi"}, "expected 'kept', not 'lost'"),
        ({"start": "echo 'port in use'"}, "the server said 'port in use"),
        ({"status": 3}, "the server ended with status 3"),
        ({"shell": "wc -c"}, "expected 'kept'"),
        ({"program": "refused"}, "expected 'token', not 'refused'"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_what_does_not_work_is_named(tmp_path: Path, broken: dict[str, str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        smoke(installed(tmp_path, **broken))  # type: ignore[arg-type]
