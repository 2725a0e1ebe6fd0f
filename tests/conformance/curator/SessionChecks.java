import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Sessions: what outlives a connection, what ends with the session, and what is told of it. */
final class SessionChecks {
    private static Inbox<ConnectionState> states(CuratorFramework client) {
        Inbox<ConnectionState> inbox = new Inbox<>();
        client.getConnectionStateListenable().addListener((c, state) -> inbox.put(state));
        return inbox;
    }

    private static long session(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    @Check
    void aSessionOutlivesItsConnection(Ground ground) throws Exception {
        Relay relay = ground.relay();
        CuratorFramework client = ground.curator(o -> o.connectString(relay.address()));
        Inbox<ConnectionState> states = states(client);
        client.create().withMode(CreateMode.EPHEMERAL).forPath(ground.path("mine"));
        long session = session(client);
        relay.cut();
        states.await(ConnectionState.SUSPENDED);
        states.await(ConnectionState.RECONNECTED);
        Expect.equal(session, session(client));
        Stat mine = client.checkExists().forPath(ground.path("mine"));
        Expect.equal(session, mine.getEphemeralOwner());
    }

    @Check
    void anExpiredSessionIsLostAndReplaced(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Inbox<ConnectionState> states = states(client);
        client.create().withMode(CreateMode.EPHEMERAL).forPath(ground.path("mine"));
        long session = session(client);
        ground.expire(client);
        states.await(ConnectionState.LOST);
        states.await(ConnectionState.RECONNECTED);
        Expect.that(session(client) != session, "it goes on with a session that is gone");
        Expect.equal(null, client.checkExists().forPath(ground.path("mine")));
    }

    @Check
    void anInjectedExpiryIsOvercome(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Inbox<ConnectionState> states = states(client);
        client.getZookeeperClient().getZooKeeper().getTestable().injectSessionExpiration();
        states.await(ConnectionState.LOST);
        states.await(ConnectionState.RECONNECTED);
        client.create().forPath(ground.path("node"));
    }

    @Check
    void aSilentSessionExpires(Ground ground) throws Exception {
        Relay relay = ground.relay();
        Inbox<KeeperState> inbox = new Inbox<>();
        Watcher watcher = event -> inbox.put(event.getState());
        ZooKeeper client = ground.own(new ZooKeeper(relay.address(), 1_000, watcher));
        inbox.expect(KeeperState.SyncConnected);
        Expect.equal(1_000, client.getSessionTimeout());
        client.create(ground.path("mine"), null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        ZooKeeper other = ground.zookeeper();
        Inbox<String> events = new Inbox<>();
        other.exists(ground.path("mine"), Ground.noting(events));
        relay.down();
        events.expect("NodeDeleted " + ground.path("mine"));
        relay.up();
        inbox.await(KeeperState.Expired);
        Expect.raises(
                KeeperException.SessionExpiredException.class,
                () -> client.exists(ground.base, false));
    }

    @Check
    void aSessionGoesOnInAnotherClient(Ground ground) throws Exception {
        Relay relay = ground.relay();
        ZooKeeper first = ground.zookeeper(relay.address());
        first.create(ground.path("mine"), null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        // Its connection is gone and does not come back: the session is free to be taken over.
        relay.down();
        Inbox<ZooKeeper> attached = new Inbox<>();
        KeeperState state =
                ground.attach(first.getSessionId(), first.getSessionPasswd(), attached);
        Expect.equal(KeeperState.SyncConnected, state);
        ZooKeeper second = attached.next();
        Expect.equal(first.getSessionId(), second.getSessionId());
        Expect.that(
                Arrays.equals(first.getSessionPasswd(), second.getSessionPasswd()),
                "it has another password");
        Expect.equal(List.of(ground.path("mine")), second.getEphemerals());
        second.close();
        Expect.equal(null, ground.zookeeper().exists(ground.path("mine"), false));
    }

    @Check
    void aWrongPasswordIsNotLetIn(Ground ground) throws Exception {
        ZooKeeper owner = ground.zookeeper();
        owner.create(ground.path("mine"), null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        KeeperState state = ground.attach(owner.getSessionId(), new byte[16], new Inbox<>());
        Expect.equal(KeeperState.Expired, state);
        Expect.that(
                ground.zookeeper().exists(ground.path("mine"), false) != null,
                "its ephemeral node is gone");
    }

    @Check
    void anUnknownSessionHasExpired(Ground ground) throws Exception {
        KeeperState state = ground.attach(0x1234_5678_9abcL, new byte[16], new Inbox<>());
        Expect.equal(KeeperState.Expired, state);
    }

    @Check
    void closingEndsASessionAndItsNodes(Ground ground) throws Exception {
        Inbox<KeeperState> inbox = new Inbox<>();
        ZooKeeper client =
                ground.own(
                        new ZooKeeper(
                                ground.address,
                                Ground.SESSION_MS,
                                event -> inbox.put(event.getState())));
        inbox.expect(KeeperState.SyncConnected);
        ZooKeeper other = ground.zookeeper();
        Inbox<String> events = new Inbox<>();
        client.create(ground.path("mine"), null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        other.exists(ground.path("mine"), Ground.noting(events));
        Expect.that(client.close((int) Ground.DEADLINE_S * 1_000), "its threads did not end");
        inbox.expect(KeeperState.Closed);
        Expect.equal(List.of(), inbox.drain());
        events.expect("NodeDeleted " + ground.path("mine"));
        Expect.raises(
                KeeperException.SessionExpiredException.class,
                () -> client.exists(ground.base, false));
    }

    @Check(alone = true)
    void everythingGoesOnAfterARestart(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework writer = ground.curator();
        Inbox<ConnectionState> states = states(client);
        Inbox<String> inbox = new Inbox<>();
        LeaderLatch latch = ground.own(new LeaderLatch(client, ground.path("latch")));
        latch.start();
        latch.await();
        CuratorCache cache = ground.own(CuratorCache.build(client, ground.path("tree")));
        cache.start();
        client.create().forPath(ground.path("tree"), Ground.bytes("1"));
        client.create().withMode(CreateMode.EPHEMERAL).forPath(ground.path("mine"));
        client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("coming"));
        long session = session(client);
        ground.restartServer();
        states.await(ConnectionState.SUSPENDED);
        states.await(ConnectionState.RECONNECTED);
        Expect.equal(session, session(client));
        Stat mine = writer.checkExists().forPath(ground.path("mine"));
        Expect.equal(session, mine.getEphemeralOwner());
        writer.create().forPath(ground.path("coming"));
        inbox.expect("NodeCreated " + ground.path("coming"));
        writer.setData().forPath(ground.path("tree"), Ground.bytes("2"));
        Expect.eventually(
                Optional.of("2"),
                () -> cache.get(ground.path("tree")).map(node -> Ground.text(node.getData())));
        Expect.eventually(true, latch::hasLeadership);
        Expect.equal(1, latch.getParticipants().size());
    }
}
