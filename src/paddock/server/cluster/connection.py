"""The connection to etcd that the configuration asks for."""

from __future__ import annotations

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Store
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl


def open_store(config: ServerConfig, url: LogUrl) -> Store:
    """Return a client of etcd; it connects at its first call. Raises LogError without grpcio."""
    from paddock.log.etcd.etcd_store import EtcdStore
    from paddock.log.etcd.options import EtcdOptions

    return EtcdStore(
        EtcdOptions(
            endpoints=url.endpoints,
            is_secure=url.is_secure,
            ca_file=config.etcd_ca_file,
            certificate_file=config.etcd_cert_file,
            key_file=config.etcd_key_file,
            user=config.etcd_user,
            password=config.etcd_password,
        ),
        Keys(url.name),
    )
