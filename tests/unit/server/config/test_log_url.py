"""The address of a shared log: what it says, and what is said of a wrong one."""

import pytest

from paddock.server.config.log_url import LogUrl, parse_endpoint, parse_log_url
from paddock.server.config.parsers import ExplainedError


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("etcd://h1:1,h2:2,h3:3/name", LogUrl(("h1:1", "h2:2", "h3:3"), "name")),
        ("etcd://h/name", LogUrl(("h:2379",), "name")),
        ("etcds://h/n", LogUrl(("h:2379",), "n", is_secure=True)),
        ("etcd://[::1]:9,10.0.0.1/A.b_c-9", LogUrl(("[::1]:9", "10.0.0.1:2379"), "A.b_c-9")),
        ("etcd://[::1]/n", LogUrl(("[::1]:2379",), "n")),
        ("etcd://a-b.example.org./n", LogUrl(("a-b.example.org.:2379",), "n")),
        ("etcd://h/n?compact=no", LogUrl(("h:2379",), "n", compacts=False)),
        ("etcd://h/n?compact=yes", LogUrl(("h:2379",), "n")),
        ("etcd://h/n?", LogUrl(("h:2379",), "n")),
    ],
)
def test_an_address_is_read(text: str, url: LogUrl) -> None:
    assert parse_log_url(text) == url
    assert parse_log_url(str(url)) == url


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected etcd://host:port,…/name, or etcds:// for TLS"),
        ("h:2379/name", "expected etcd://host:port,…/name, or etcds:// for TLS"),
        ("http://h:2379/name", "expected etcd://host:port,…/name, or etcds:// for TLS"),
        ("ETCD://h/name", "expected etcd://host:port,…/name, or etcds:// for TLS"),
        ("etcd://", "there is no host; expected etcd://host:port,…/name"),
        ("etcd:///name", "there is no host; expected etcd://host:port,…/name"),
        ("etcd://h1,,h2/name", "'' has no host"),
        ("etcd://:2379/name", "':2379' has no host"),
        ("etcd://h,h:2379/name", "a host is there twice"),
        ("etcd://h:/name", "the port '' of h cannot be used: 1 to 65535"),
        ("etcd://h:0/name", "the port '0' of h cannot be used: 1 to 65535"),
        ("etcd://h:65536/name", "the port '65536' of h cannot be used: 1 to 65535"),
        ("etcd://h:x/name", "the port 'x' of h cannot be used: 1 to 65535"),
        ("etcd://h:\u0661/name", "the port '\u0661' of h cannot be used: 1 to 65535"),
        ("etcd://::1/name", "'::1': an IPv6 address stands in brackets, as [::1]:2379"),
        (
            "etcd://h h/name",
            "the host 'h h' cannot be used: a name, an address, or [an IPv6 address]",
        ),
        (
            "etcd://h1 ,h2/n",
            "the host 'h1 ' cannot be used: a name, an address, or [an IPv6 address]",
        ),
        (
            "etcd://h:2379",
            "there is no name of the service behind the hosts; expected etcd://host:port,…/name",
        ),
        (
            "etcd://h:2379/?compact=no",
            "there is no name of the service behind the hosts; expected etcd://host:port,…/name",
        ),
        (
            "etcd://h/a/b",
            "the name 'a/b' cannot be used: letters, digits, '.', '_' and '-', at most 100",
        ),
        (
            "etcd://h/näme",
            "the name 'näme' cannot be used: letters, digits, '.', '_' and '-', at most 100",
        ),
        (
            "etcd://h/name\n",
            "the name 'name\\n' cannot be used: letters, digits, '.', '_' and '-', at most 100",
        ),
        (
            "etcd://h/..",
            "the name '..' cannot be used: letters, digits, '.', '_' and '-', at most 100",
        ),
        ("etcd://h/n?compact=maybe", "compact is yes or no, not 'maybe'"),
        ("etcd://h/n?fast", "there is no option 'fast'; there is compact=no"),
        ("etcd://h/n?compact=no&x=1", "there is no option 'x'; there is compact=no"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ExplainedError) as caught:
        parse_log_url(text)
    assert str(caught.value) == says
    assert caught.value.may_repeat


def test_a_name_may_have_a_hundred_characters() -> None:
    assert parse_log_url(f"etcd://h/{'n' * 100}").name == "n" * 100
    with pytest.raises(ExplainedError, match="at most 100"):
        parse_log_url(f"etcd://h/{'n' * 101}")


def test_a_user_in_the_address_is_refused_and_never_repeated() -> None:
    with pytest.raises(ExplainedError, match="PADDOCK_ETCD_PASSWORD") as caught:
        parse_log_url("etcd://me:hush@h/name")
    assert "hush" not in str(caught.value)
    assert not caught.value.may_repeat


def test_an_endpoint_needs_a_port_where_there_is_no_default() -> None:
    assert parse_endpoint("h:1") == "h:1"
    assert parse_endpoint("[::1]:02181") == "[::1]:2181"
    with pytest.raises(ExplainedError, match="'h' has no port"):
        parse_endpoint("h")
