import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Sessions that another kind of client has opened: they go on here, and there again. */
final class ExactChecks {
    /** A session, and an ephemeral node of it whose version is 1. */
    private static final class Handed {
        final long session;
        final byte[] password = new byte[16];
        final String path;

        Handed(Ground ground) throws Exception {
            String[] words = ground.ask("hand over an exact session").split(" ");
            session = Long.parseUnsignedLong(words[0], 16);
            for (int at = 0; at < password.length; at++) {
                password[at] = (byte) Integer.parseInt(words[1].substring(2 * at, 2 * at + 2), 16);
            }
            path = words[2];
        }

        void expectIn(ZooKeeper client) throws Exception {
            Expect.equal(session, client.getSessionId());
            Expect.that(
                    Arrays.equals(password, client.getSessionPasswd()), "it has another password");
            Expect.equal(session, client.exists(path, false).getEphemeralOwner());
        }
    }

    @Check(alone = true)
    void aSessionGoesOnInJavasClient(Ground ground) throws Exception {
        Handed handed = new Handed(ground);
        Relay relay = ground.relay();
        Inbox<KeeperState> states = new Inbox<>();
        ZooKeeper client =
                ground.own(
                        new ZooKeeper(
                                relay.address(),
                                Ground.SESSION_MS,
                                event -> states.put(event.getState()),
                                handed.session,
                                handed.password));
        states.expect(KeeperState.SyncConnected);
        handed.expectIn(client);
        Stat stat = client.setData(handed.path, Ground.bytes("once"), 1);
        Expect.equal(2, stat.getVersion());
        relay.cut();
        states.await(KeeperState.Disconnected);
        states.await(KeeperState.SyncConnected);
        handed.expectIn(client);
        client.setData(handed.path, Ground.bytes("theirs"), 2);
        relay.down();
        ground.please("take the exact session back");
        relay.up();
        states.await(KeeperState.Expired);
    }

    @Check(alone = true)
    void aSessionGoesOnInCurator(Ground ground) throws Exception {
        Handed handed = new Handed(ground);
        Relay relay = ground.relay();
        AtomicBoolean isFirst = new AtomicBoolean(true);
        CuratorFramework client =
                ground.curator(
                        builder ->
                                builder.connectString(relay.address())
                                        .zookeeperFactory(
                                                (address, timeout, watcher, readOnly) ->
                                                        isFirst.getAndSet(false)
                                                                ? new ZooKeeper(
                                                                        address,
                                                                        timeout,
                                                                        watcher,
                                                                        handed.session,
                                                                        handed.password)
                                                                : new ZooKeeper(
                                                                        address,
                                                                        timeout,
                                                                        watcher)));
        Inbox<ConnectionState> states = new Inbox<>();
        client.getConnectionStateListenable().addListener((c, state) -> states.put(state));
        handed.expectIn(client.getZookeeperClient().getZooKeeper());
        client.setData().withVersion(1).forPath(handed.path, Ground.bytes("once"));
        relay.cut();
        states.await(ConnectionState.SUSPENDED);
        states.await(ConnectionState.RECONNECTED);
        handed.expectIn(client.getZookeeperClient().getZooKeeper());
        client.setData().withVersion(2).forPath(handed.path, Ground.bytes("theirs"));
        relay.down();
        ground.please("take the exact session back");
        relay.up();
        states.await(ConnectionState.LOST);
        states.await(ConnectionState.RECONNECTED);
        Expect.that(
                client.getZookeeperClient().getZooKeeper().getSessionId() != handed.session,
                "it goes on with a session that is gone");
    }
}
