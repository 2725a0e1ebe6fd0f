import static org.apache.zookeeper.CreateMode.EPHEMERAL;
import static org.apache.zookeeper.CreateMode.PERSISTENT;
import static org.apache.zookeeper.CreateMode.PERSISTENT_SEQUENTIAL;
import static org.apache.zookeeper.ZooDefs.Ids.CREATOR_ALL_ACL;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Transaction;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Apache's own Java client, where Curator does not reach. */
final class ClientChecks {
    private static final int FRAME_LIMIT = 0xfffff;

    private static void create(ZooKeeper client, String path, String data) throws Exception {
        client.create(path, Ground.bytes(data), OPEN_ACL_UNSAFE, PERSISTENT);
    }

    @Check
    void multiReadAnswersEachForItself(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        create(client, ground.path("a"), "1");
        client.addAuthInfo("digest", Ground.bytes("ann:secret"));
        client.create(ground.path("hidden"), null, CREATOR_ALL_ACL, PERSISTENT);
        List<OpResult> results =
                ground.zookeeper()
                        .multi(
                                List.of(
                                        Op.getData(ground.path("a")),
                                        Op.getData(ground.path("missing")),
                                        Op.getData(ground.path("hidden")),
                                        Op.getChildren(ground.base)));
        Expect.equal("1", Ground.text(((OpResult.GetDataResult) results.get(0)).getData()));
        Expect.equal(
                KeeperException.Code.NONODE.intValue(),
                ((OpResult.ErrorResult) results.get(1)).getErr());
        Expect.equal(
                KeeperException.Code.NOAUTH.intValue(),
                ((OpResult.ErrorResult) results.get(2)).getErr());
        List<String> children = ((OpResult.GetChildrenResult) results.get(3)).getChildren();
        Expect.equal(Set.of("a", "hidden"), new TreeSet<>(children));
    }

    @Check
    void aTransactionIsBuiltAndCommitted(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Transaction transaction = client.transaction();
        transaction.create(ground.path("a"), null, OPEN_ACL_UNSAFE, PERSISTENT);
        transaction.setData(ground.path("a"), Ground.bytes("1"), 0);
        transaction.create(ground.path("n-"), null, OPEN_ACL_UNSAFE, PERSISTENT_SEQUENTIAL);
        List<OpResult> results = transaction.commit();
        Expect.equal(ground.path("a"), ((OpResult.CreateResult) results.get(0)).getPath());
        Expect.equal(1, ((OpResult.SetDataResult) results.get(1)).getStat().getVersion());
        Expect.equal(
                ground.path("n-0000000001"), ((OpResult.CreateResult) results.get(2)).getPath());
        Expect.equal(List.of(), client.multi(List.of()));
    }

    @Check
    void repliesComeInTheOrderOfRequests(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        for (int number = 0; number < 200; number++) {
            String name = ground.path("n" + number);
            client.create(
                    name,
                    null,
                    OPEN_ACL_UNSAFE,
                    PERSISTENT,
                    (code, path, context, created) -> inbox.put(code + " " + path),
                    null);
            client.exists(
                    name,
                    false,
                    (code, path, context, stat) -> inbox.put(code + " stat " + path),
                    null);
        }
        for (int number = 0; number < 200; number++) {
            String name = ground.path("n" + number);
            inbox.expect("0 " + name, "0 stat " + name);
        }
    }

    @Check
    void syncShowsWhatOthersWrote(Ground ground) throws Exception {
        ZooKeeper writer = ground.zookeeper();
        ZooKeeper reader = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        for (int number = 0; number < 10; number++) {
            writer.setData(ground.base, Ground.bytes("" + number), number);
            reader.sync(ground.base, (code, path, context) -> inbox.put(code + " " + path), null);
            Expect.equal("" + number, Ground.text(reader.getData(ground.base, false, null)));
            inbox.expect("0 " + ground.base);
        }
        reader.sync(ground.path("no"), (code, path, context) -> inbox.put(code + " " + path), null);
        inbox.expect("0 " + ground.path("no"));
    }

    @Check
    void chrootHidesWhatIsAboveIt(Ground ground) throws Exception {
        ZooKeeper outer = ground.zookeeper();
        ZooKeeper inner = ground.zookeeper(ground.address + ground.base);
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        inner.exists("/a", watcher);
        inner.getChildren("/", watcher);
        Expect.equal("/a", inner.create("/a", null, OPEN_ACL_UNSAFE, EPHEMERAL));
        inbox.expect("NodeCreated /a", "NodeChildrenChanged /");
        Expect.that(outer.exists(ground.path("a"), false) != null, "it is elsewhere");
        // The list of a session's ephemerals is the server's, and knows of no chroot.
        Expect.equal(List.of(ground.path("a")), inner.getEphemerals(ground.base));
        List<OpResult> results =
                inner.multi(
                        List.of(
                                Op.create("/b", null, OPEN_ACL_UNSAFE, PERSISTENT),
                                Op.delete("/b", -1)));
        // Nor does the client take it off the results of a transaction.
        Expect.equal(ground.path("b"), ((OpResult.CreateResult) results.get(0)).getPath());
    }

    @Check
    void ephemeralsAreListedByPrefix(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        for (String name : List.of("a1", "a2", "b1")) {
            client.create(ground.path(name), null, OPEN_ACL_UNSAFE, EPHEMERAL);
        }
        ground.zookeeper().create(ground.path("a3"), null, OPEN_ACL_UNSAFE, EPHEMERAL);
        Expect.equal(
                Set.of(ground.path("a1"), ground.path("a2")),
                new TreeSet<>(client.getEphemerals(ground.path("a"))));
        Expect.equal(3, client.getEphemerals().size());
    }

    @Check
    void allChildrenAreCounted(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Expect.equal(0, client.getAllChildrenNumber(ground.base));
        create(client, ground.path("a"), "");
        create(client, ground.path("a/b"), "");
        create(client, ground.path("a/b/c"), "");
        Expect.equal(3, client.getAllChildrenNumber(ground.base));
        Expect.equal(1, client.getAllChildrenNumber(ground.path("a/b")));
        Expect.raises(
                KeeperException.NoNodeException.class,
                () -> client.getAllChildrenNumber(ground.path("no")));
    }

    @Check
    void whoAmIListsTheIdentities(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        client.addAuthInfo("digest", Ground.bytes("ann:secret"));
        client.exists("/", false);
        Set<String> identities = new TreeSet<>();
        for (ClientInfo info : client.whoAmI()) {
            identities.add(info.getAuthScheme() + ":" + info.getUser());
        }
        Expect.equal(Set.of("digest:ann", "ip:127.0.0.1"), identities);
    }

    @Check
    void anUnknownSchemeFailsAndClosesTheConnection(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Inbox<Watcher.Event.KeeperState> inbox = new Inbox<>();
        client.register(event -> inbox.put(event.getState()));
        client.addAuthInfo("no-such-scheme", new byte[0]);
        inbox.await(Watcher.Event.KeeperState.AuthFailed);
        Expect.raises(
                KeeperException.AuthFailedException.class, () -> client.exists("/", false));
    }

    @Check
    void identitiesAreSentAgainOnANewConnection(Ground ground) throws Exception {
        Relay relay = ground.relay();
        ZooKeeper client = ground.zookeeper(relay.address());
        client.addAuthInfo("digest", Ground.bytes("ann:secret"));
        client.create(ground.path("mine"), Ground.bytes("1"), CREATOR_ALL_ACL, PERSISTENT);
        Inbox<Watcher.Event.KeeperState> inbox = new Inbox<>();
        client.register(event -> inbox.put(event.getState()));
        relay.cut();
        inbox.await(Watcher.Event.KeeperState.Disconnected);
        inbox.await(Watcher.Event.KeeperState.SyncConnected);
        Expect.equal("1", Ground.text(client.getData(ground.path("mine"), false, null)));
    }

    @Check
    void reconfigIsRefused(Ground ground) throws Exception {
        ZooKeeperAdmin admin =
                ground.own(new ZooKeeperAdmin(ground.address, Ground.SESSION_MS, event -> {}));
        Expect.raises(
                KeeperException.ReconfigDisabledException.class,
                () -> admin.reconfigure("server.2=127.0.0.1:1:2;3", null, null, -1, null));
        Expect.equal(0, admin.getConfig(false, new Stat()).length);
    }

    @Check
    void nullAndEmptyDataDiffer(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        client.create(ground.path("null"), null, OPEN_ACL_UNSAFE, PERSISTENT);
        client.create(ground.path("empty"), new byte[0], OPEN_ACL_UNSAFE, PERSISTENT);
        Expect.equal(null, client.getData(ground.path("null"), false, null));
        Expect.equal(0, client.getData(ground.path("empty"), false, null).length);
    }

    @Check
    void largeDataComesBackAndTooLargeDataCostsTheConnection(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        byte[] data = new byte[FRAME_LIMIT - 1_000];
        Arrays.fill(data, (byte) 7);
        client.setData(ground.base, data, -1);
        Expect.that(
                Arrays.equals(data, client.getData(ground.base, false, null)), "it was changed");
        // How the connection breaks is open (a reset may come before its end); that it does is not.
        Expect.raises(
                KeeperException.ConnectionLossException.class,
                () -> client.setData(ground.base, new byte[FRAME_LIMIT + 1], -1));
        Expect.equal(1, ground.zookeeper().exists(ground.base, false).getVersion());
    }

    @Check
    void statsAreTheServers(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Stat created = new Stat();
        String path = ground.path("node");
        client.create(path, Ground.bytes("abc"), OPEN_ACL_UNSAFE, EPHEMERAL, created);
        Expect.equal(client.getSessionId(), created.getEphemeralOwner());
        Expect.equal(created, client.exists(path, false));
        Stat set = client.setData(path, Ground.bytes("four"), 0);
        Expect.equal(created.getCzxid(), set.getCzxid());
        Expect.that(set.getMzxid() > created.getMzxid(), "its zxid did not grow");
        Expect.equal(4, set.getDataLength());
        Expect.equal(set.getMzxid(), client.exists(path, false).getMzxid());
        Expect.raises(
                KeeperException.BadVersionException.class, () -> client.delete(path, 0));
    }

    @Check
    void aclsAreCheckedAndRead(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        // The client looks for null in them, which some lists do not take.
        List<ACL> acl =
                Arrays.asList(
                        new ACL(Perms.READ | Perms.ADMIN, new Id("world", "anyone")),
                        new ACL(Perms.ALL, new Id("ip", "10.0.0.0/8")));
        List<ACL> unknown = Arrays.asList(new ACL(Perms.ALL, new Id("no-such", "x")));
        String path = ground.path("node");
        client.create(path, Ground.bytes("1"), acl, PERSISTENT);
        Stat stat = new Stat();
        Expect.equal(acl, client.getACL(path, stat));
        Expect.equal(0, stat.getAversion());
        Expect.raises(
                KeeperException.NoAuthException.class, () -> client.setData(path, null, -1));
        Expect.raises(
                KeeperException.InvalidACLException.class,
                () -> client.setACL(path, unknown, -1));
        Expect.raises(
                KeeperException.BadVersionException.class,
                () -> client.setACL(path, OPEN_ACL_UNSAFE, 9));
        client.setACL(path, OPEN_ACL_UNSAFE, 0);
        client.setData(path, null, -1);
    }
}
