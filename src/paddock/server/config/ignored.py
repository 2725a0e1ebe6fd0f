"""Ignored settings: the keys of a `zoo.cfg` that have no effect here, and the reasons.

A name that ends with `*` stands for every key with this prefix.
"""

from __future__ import annotations

from typing import Final

_KEYS_BY_REASON: Final[dict[str, str]] = {
    "it has no links to other servers": """
        server.* group.* weight.* version initLimit connectToLearnerMasterLimit
        electionAlg peerType oraclePath leaderServes leader.* leaderConnectDelayDuringRetryMs
        learner.* follower.* observer.* observerMaster.* observerMasterPort fastleader.* cnxTimeout
        quorum.* quorumListenOnAllIPs quorumCnxnTimeoutMs sslQuorum sslQuorumReloadCertFiles
        ssl.quorum.* portUnification standaloneEnabled reconfigEnabled dynamicConfigFile
        skipReconfigACL localSessionsEnabled localSessionsUpgradingEnabled syncEnabled
        electionPortBindRetry commitLogCount snapshotSizeFactor forceSnapshotSync tcpKeepAlive
        multiAddress.* ensembleAuthName messageTracker.* serializeLastProcessedZxid.enabled
        forward_learner_requests_to_commit_processor_disabled commitProcessor.*
        """,
    "a write is always on disk before it is acknowledged": "forceSync",
    "a batch forms while the one before it is written": """
        flushDelay maxWriteQueuePollTime maxBatchSize
        """,
    "there is no cache of replies": "maxResponseCacheSize maxGetChildrenResponseCacheSize",
    "the log is in segments of a fixed size": "preAllocSize txnLogSizeLimitInKb",
    "snapshots are not compressed": "snapshot.compression.method",
    "a start on missing data is distinguished from one on an empty folder": """
        snapshot.trust.empty db.autocreate datadir.autocreate
        """,
    "Apache ZooKeeper does not read it either; see sessionRequireClientSASLAuth": """
        requireClientAuthScheme
        """,
    "users of SASL have what ACLs grant to them": "letAnySaslUserDoX",
    "passwords of SASL are in its file of users": "SASLAuthenticationProvider.*",
    "SASL has the users of paddock.jaasFile": "java.security.login.auth.config jaasLoginRenew",
    "a server has its key in a keytab, and asks no KDC": "kinit requireKerberosConfig",
    "it is about the server that a client looks for": "server.principal server.realm",
    "it is a setting of clients, or of links between servers": "sasl.client*",
    "digests are those of upstream's default, SHA-1": "DigestAuthenticationProvider.digestAlg",
    "the digest scheme is always there": "DigestAuthenticationProvider.enabled",
    "there are world, auth, ip, digest, x509, and sasl with users or a keytab": """
        authProvider.*
        """,
    "ACLs always hold, and are checked when a write is applied": "skipACL enableEagerACLCheck",
    "the digest of the state is always kept": "digest.enabled",
    "the end of a session deletes its ephemerals in one log entry": "closeSessionTxn.enabled",
    "there is only one implementation of watches": """
        watchManagerName bitHashCacheSize watcherClean* maxInProcessingDeadWatchers
        """,
    "backpressure holds clients back, see globalOutstandingLimit": """
        largeRequestMaxBytes largeRequestThreshold throttled_op_wait_time request_throttle*
        request_stale*
        """,
    "connections are bounded by maxCnxns and maxClientCnxns": "connection_throttle*",
    "certificates in a PEM file have no password": """
        ssl.trustStore.password ssl.trustStore.passwordPath
        """,
    "clients are identified by the subject of their certificate, scheme x509": """
        ssl.authProvider X509AuthenticationProvider.clientCertId*
        """,
    "it is about connections to servers; for clients see ssl.clientHostnameVerification": """
        ssl.hostnameVerification
        """,
    "it is about the JVM and its libraries": """
        ssl.sslProvider ssl.context.* fips-mode
        serverCnxnFactory clientCnxnSocket jmx.* jvm.* netty.* nio.* java.* sun.* controllerPort
        intBufferStartingSizeBytes audit.impl.class
        """,
    "metrics are read when they are asked for, without threads and queues": """
        metricsProvider.numWorkerThreads metricsProvider.maxQueueSize
        metricsProvider.workerShutdownTimeoutMs
        metricsProvider.prometheusMetricsSummaryRotateIntervalSeconds
        """,
    "/metrics is served with TLS by the admin server, see admin.forceHttps": """
        metricsProvider.httpsPort metricsProvider.ssl.*
        """,
    "metrics have the keys className, httpHost, httpPort and exportJvmInfo": "metricsProvider.*",
    "metrics are those of /metrics and mntr": "pathStats.*",
    "the admin server speaks HTTP 1.1": "admin.httpVersion",
    "there are no TTL nodes of 3.5.3 here": "emulate353TTLNodes",
    "pings keep sessions alive": "clientTcpKeepAlive",
    "it is a setting of clients": "client.secure disableAutoWatchReset request.timeout",
}

_REASONS: Final = {
    name: reason for reason, names in _KEYS_BY_REASON.items() for name in names.split()
}


def why_unused(key: str) -> str | None:
    """Return why a key of upstream's is not used here; None if upstream does not have it."""
    prefixes = (name for name in _REASONS if name.endswith("*") and key.startswith(name[:-1]))
    return _REASONS.get(key) or _REASONS.get(next(prefixes, ""))
