"""What may be said about where etcd is."""

from pathlib import Path

import pytest

from paddock.log.etcd.options import EtcdOptions


def test_endpoints_may_be_names_and_addresses() -> None:
    endpoints = ("etcd-1:2379", "127.0.0.1:1", "[::1]:65535")
    assert EtcdOptions(endpoints).endpoints == endpoints


@pytest.mark.parametrize(
    "endpoint", ["", "host", ":2379", "host:", "host:port", "host:0", "host:65536", "host:-1"]
)
def test_anything_else_is_no_endpoint(endpoint: str) -> None:
    with pytest.raises(ValueError, match="not an endpoint of etcd"):
        EtcdOptions(("h:1", endpoint))


def test_there_is_an_endpoint() -> None:
    with pytest.raises(ValueError, match="at least one endpoint"):
        EtcdOptions(())


def test_a_certificate_and_its_key_go_together() -> None:
    certificate, key = Path("client.pem"), Path("client.key")
    with pytest.raises(ValueError, match="go together"):
        EtcdOptions(("h:1",), is_secure=True, certificate_file=certificate)
    with pytest.raises(ValueError, match="go together"):
        EtcdOptions(("h:1",), is_secure=True, key_file=key)
    EtcdOptions(("h:1",), is_secure=True, certificate_file=certificate, key_file=key)


def test_certificates_need_tls() -> None:
    with pytest.raises(ValueError, match="etcds://"):
        EtcdOptions(("h:1",), ca_file=Path("ca.pem"))


def test_a_password_needs_a_user_and_is_not_shown() -> None:
    with pytest.raises(ValueError, match="needs a user"):
        EtcdOptions(("h:1",), password="secret")
    assert "secret" not in repr(EtcdOptions(("h:1",), user="ann", password="secret"))
