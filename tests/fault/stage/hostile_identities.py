"""Attacks with many identities, and with ACLs that are long or many.

Figures of what a server took that did all the work in one step, or kept what it should not, are in
the comments: what a case is there for.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.fault.stage.hostile import Case
from tests.fault.stage.hostile_stage import CONNECTIONS, Stage, credentials
from tests.support import requests as rq
from tests.support.records import Acl, Perm, Request


def acl_product(stage: Stage) -> None:
    # 330 identities times 5,000 entries: 4.7 s and hundreds of megabytes, at each start again.
    one = stage.identified()
    acl = [Acl(number, "auth", "") for number in range(5_000 * stage.scale)]
    stage.ask([one], [rq.create(stage.path("product"), acl=acl)])


def many_auth_creates(stage: Stage) -> None:
    # The same by many small ACLs: each node keeps an ACL of 16 kB for 50 bytes that were sent.
    one = stage.identified()
    stage.ask([one], list(auth_creates(stage, 2_500 * stage.scale)))


def auth_creates_in_a_multi(stage: Stage) -> None:
    # 234 kB held the loop for 11 s and took 200 MB.
    one = stage.identified()
    stage.ask([one], [rq.multi(*auth_creates(stage, 4_000))] * stage.scale)


def auth_creates(stage: Stage, count: int) -> Iterator[Request]:
    for number in range(count):
        # Permissions are any number, and an ACL with another number is another ACL.
        acl = [Acl(Perm.ALL | number << 5, "auth", "")]
        yield rq.create(stage.path(f"auth{number}"), acl=acl)


def long_acls(stage: Stage) -> None:
    # One of 45,000 IPv6 addresses held the loop for 1.5 s, and for 0.6 s when it was first asked.
    (one,) = stage.join()
    for number, length in enumerate((40_000, *[4_900] * 2 * stage.scale)):
        acl = [Acl(1 << number % 5, "ip", f"::{address:x}") for address in range(length)]
        stage.ask([one], [rq.create(stage.path(number), acl=acl), rq.get_data(stage.path(number))])


def prepare_guarded(stage: Stage) -> None:
    """Have a client with many identities, and a node that the last one of them alone may use."""
    stage.prepared = [stage.identified()]
    stage.guard(stage.path("guarded"), stage.last_identity())


def prepare_forbidden(stage: Stage) -> None:
    """Have a client with many identities, and a node that none of them may use."""
    stage.prepared = [stage.identified()]
    acl = [Acl(Perm.ALL, "digest", "nobody:x")]
    stage.ask(stage.join(), [rq.create(stage.path("forbidden"), acl=acl)])


def refused_reads(stage: Stage) -> None:
    # 10,000 of them, 230 kB, took 3.9 s in one step: each looks for each identity.
    reads = [rq.get_data(stage.path("forbidden"))] * 10_000 * stage.scale
    stage.ask(stage.prepared, reads)


def guarded_multi_read(stage: Stage) -> None:
    # A frame of them took 16 s.
    reads = [rq.get_children(stage.path("guarded"))] * 10_000
    stage.ask(stage.prepared, [rq.multi_read(*reads)] * 3 * stage.scale)


def guarded_checks_in_a_multi(stage: Stage) -> None:
    checks = [rq.check(stage.path("guarded"))] * 20_000
    stage.ask(stage.prepared, [rq.multi(*checks)] * stage.scale)


def watchers_with_identities(stage: Stage) -> None:
    # 60 watchers with 330 identities each, who may not see the node: 500 changes took 8 s.
    watchers = [stage.identified() for _ in range(CONNECTIONS - 1)]
    (one,) = stage.join()
    path = stage.path("hidden")
    for watcher in watchers:
        stage.ask([watcher], [rq.add_watch(path, 0)])
    stage.listen(*watchers)
    hidden = [Acl(Perm.ALL & ~Perm.READ, "world", "anyone")]
    stage.ask([one], [rq.create(path, acl=hidden), *[rq.set_data(path, b"")] * 500 * stage.scale])


def prepare_masked(stage: Stage) -> None:
    # Everybody may read it, and nobody may see the digests in it.
    stage.guard(stage.path("masked"), Acl(Perm.READ, "world", "anyone"), 30_000)
    stage.prepared = stage.join()


def masked_acls_behind_a_write(stage: Stage) -> None:
    # 60 of them took 8 s in the middle of a batch.
    reads = [rq.get_acl(stage.path("masked"))] * 60 * stage.scale
    stage.ask(stage.prepared, [rq.set_data(stage.root, b""), *reads])


def who_am_i_behind_a_write(stage: Stage) -> None:
    # 9,000 of them took 3 s in the middle of a batch.
    one = stage.identified()
    stage.ask([one], [rq.set_data(stage.root, b""), *[rq.who_am_i()] * 9_000])


def the_same_identity_again(stage: Stage) -> None:
    one = stage.identified()
    stage.ask([one], [credentials(stage.identities - 1)] * 8_000 * stage.scale)


def growing_identities(stage: Stage) -> None:
    # Each write carries a set of its own: 300 kB sent were 281 MB at the next start.
    # How many a client may have is found out first; one too many would end its connection.
    stage.identified()
    for number in range(100, 100 + 20 * stage.scale):
        (one,) = stage.join()
        requests = [
            request
            for more in range(stage.identities * 4 // 5)
            for request in (rq.auth("digest", b"%d-%d:p" % (number, more)), rq.check("/", 5))
        ]
        stage.ask([one], requests)
        one.close()


def identities_in_the_log(stage: Stage) -> None:
    # Each of these small writes takes 16 kB of the log along, and none of them a snapshot.
    one = stage.identified()
    stage.ask([one], [rq.check("/", 5)] * 8_000 * stage.scale)


IDENTITY_ATTACKS = (
    Case("the product of auth entries and identities", "create", "identities × ACL entries",
         acl_product, memory_mb_each=20, is_restarted=True, is_alone=True, is_atomic=True),
    Case("an ACL of all identities at each of many nodes", "create", "identities × nodes",
         many_auth_creates, memory_mb_each=40, is_alone=True),
    Case("an ACL of all identities at each step of a multi", "multi", "identities × steps",
         auth_creates_in_a_multi, memory_mb_each=40, is_restarted=True, is_alone=True,
         is_atomic=True),
    Case("ACLs as long as a frame", "create, get", "entries of an ACL",
         long_acls, memory_mb_each=60, is_atomic=True),
    Case("reads that are refused for each of many identities", "get", "identities × requests",
         refused_reads, prepare_forbidden),
    Case("a multiRead that asks for each of many identities", "multiRead", "identities × reads",
         guarded_multi_read, prepare_guarded, is_atomic=True),
    Case("a multi that asks for each of many identities", "multi, check", "identities × steps",
         guarded_checks_in_a_multi, prepare_guarded, is_restarted=True, is_alone=True,
         is_atomic=True),
    Case("watchers with many identities", "setData", "watchers × identities",
         watchers_with_identities),
    Case("masked ACLs behind a write", "getACL", "entries of an ACL × requests",
         masked_acls_behind_a_write, prepare_masked, memory_mb=64, is_atomic=True),
    Case("whoAmI behind a write", "whoAmI", "identities × requests",
         who_am_i_behind_a_write, memory_mb=64),
    Case("an identity that is known already", "auth", "identities × packets",
         the_same_identity_again),
    Case("identities that grow with each write", "auth, check", "sets of identities in the log",
         growing_identities, memory_mb=20, is_restarted=True, is_alone=True),
    Case("many identities with each write", "check", "bytes in the log",
         identities_in_the_log, memory_mb=20, is_restarted=True, is_alone=True),
)  # fmt: skip
