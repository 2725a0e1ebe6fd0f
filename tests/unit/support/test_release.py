"""What release a server's jar is of is read from it, and releases have an order."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.support.release import Release, release_of

PROPERTIES = "META-INF/maven/org.apache.zookeeper/zookeeper/pom.properties"


def jar_with(path: Path, text: str) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr(PROPERTIES, text)
    return path


@pytest.mark.parametrize(
    ("version", "release"),
    [("3.8.0", (3, 8, 0)), ("3.9.10", (3, 9, 10)), ("3.10.0-SNAPSHOT", (3, 10, 0))],
)
def test_a_jar_tells_its_release(
    tmp_path: Path, version: str, release: tuple[int, int, int]
) -> None:
    text = f"artifactId=zookeeper\ngroupId=org.apache.zookeeper\nversion={version}\n"
    assert release_of(jar_with(tmp_path / "zookeeper.jar", text)) == release


def test_a_jar_that_does_not_tell_is_no_judge(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not tell its release"):
        release_of(jar_with(tmp_path / "zookeeper.jar", "version=new\n"))


def test_a_release_is_asked_whether_it_has_what_came_with_another() -> None:
    assert Release(3, 8, 0) < (3, 9) <= Release(3, 9, 0) < (3, 9, 3) <= Release(3, 9, 10)
    assert str(Release(3, 9, 10)) == "3.9.10"
