import static org.apache.zookeeper.CreateMode.PERSISTENT;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.version.Info;

/** Watches of Apache's own client: removed by kind, and set again on a new connection. */
final class ClientWatchChecks {
    private static void create(ZooKeeper client, String path) throws Exception {
        client.create(path, null, OPEN_ACL_UNSAFE, PERSISTENT);
    }

    /** What was told, once nothing more is on its way. */
    private static List<String> told(ZooKeeper client, Inbox<String> inbox) throws Exception {
        Ground.settle(client);
        List<String> told = inbox.drain();
        told.sort(null);
        return told;
    }

    @Check
    void dataWatchesAreRemovedAlone(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        client.getData(ground.base, watcher, null);
        client.getChildren(ground.base, watcher);
        client.removeWatches(ground.base, watcher, WatcherType.Data, false);
        inbox.expect("DataWatchRemoved " + ground.base);
        writer.setData(ground.base, null, -1);
        create(writer, ground.path("child"));
        Expect.equal(List.of("NodeChildrenChanged " + ground.base), told(client, inbox));
    }

    @Check
    void childWatchesAreRemovedAlone(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        client.getData(ground.base, watcher, null);
        client.getChildren(ground.base, watcher);
        client.removeWatches(ground.base, watcher, WatcherType.Children, false);
        inbox.expect("ChildWatchRemoved " + ground.base);
        create(writer, ground.path("child"));
        writer.setData(ground.base, null, -1);
        Expect.equal(List.of("NodeDataChanged " + ground.base), told(client, inbox));
    }

    /** With a watcher named, the client only asks whether it is there; so this is the server's. */
    @Check
    void allWatchesOfOneKindAreRemovedAtTheServer(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        client.getData(ground.base, watcher, null);
        client.getChildren(ground.base, watcher);
        client.removeAllWatches(ground.base, WatcherType.Data, false);
        inbox.expect("DataWatchRemoved " + ground.base);
        writer.setData(ground.base, null, -1);
        create(writer, ground.path("a"));
        Expect.equal(List.of("NodeChildrenChanged " + ground.base), told(client, inbox));
        client.getData(ground.base, watcher, null);
        client.getChildren(ground.base, watcher);
        client.removeAllWatches(ground.base, WatcherType.Children, false);
        inbox.expect("ChildWatchRemoved " + ground.base);
        create(writer, ground.path("b"));
        writer.setData(ground.base, null, -1);
        Expect.equal(List.of("NodeDataChanged " + ground.base), told(client, inbox));
        Expect.raises(
                KeeperException.NoWatcherException.class,
                () -> client.removeAllWatches(ground.base, WatcherType.Any, false));
    }

    @Check
    void watchesOfAnyKindAreRemovedTogether(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        client.exists(ground.base, watcher);
        client.getChildren(ground.base, watcher);
        client.removeWatches(ground.base, watcher, WatcherType.Any, false);
        Expect.equal(
                List.of("ChildWatchRemoved " + ground.base, "DataWatchRemoved " + ground.base),
                told(client, inbox));
        writer.setData(ground.base, null, -1);
        create(writer, ground.path("child"));
        Expect.equal(List.of(), told(client, inbox));
    }

    @Check
    void oneOfTwoWatchersIsRemoved(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> leaving = new Inbox<>();
        Inbox<String> staying = new Inbox<>();
        Watcher first = Ground.noting(leaving);
        client.getData(ground.base, first, null);
        client.getData(ground.base, Ground.noting(staying), null);
        client.removeWatches(ground.base, first, WatcherType.Data, false);
        writer.setData(ground.base, null, -1);
        Expect.equal(List.of("NodeDataChanged " + ground.base), told(client, staying));
        Expect.equal(List.of("DataWatchRemoved " + ground.base), leaving.drain());
    }

    @Check
    void aWatchThatIsNotThereCannotBeRemoved(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Watcher watcher = Ground.noting(new Inbox<>());
        Expect.raises(
                KeeperException.NoWatcherException.class,
                () -> client.removeWatches(ground.base, watcher, WatcherType.Any, false));
        client.getData(ground.base, watcher, null);
        Expect.raises(
                KeeperException.NoWatcherException.class,
                () -> client.removeWatches(ground.base, watcher, WatcherType.Children, false));
        Expect.raises(
                KeeperException.NoWatcherException.class,
                () -> client.removeAllWatches(ground.path("no"), WatcherType.Any, false));
    }

    @Check
    void persistentWatchesAreRemovedByAnyKind(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        for (AddWatchMode mode : AddWatchMode.values()) {
            client.addWatch(ground.base, watcher, mode);
            client.removeAllWatches(ground.base, WatcherType.Any, false);
            inbox.expect("PersistentWatchRemoved " + ground.base);
            writer.setData(ground.base, null, -1);
            Expect.equal(List.of(), told(client, inbox));
        }
    }

    @Check
    void aRecursiveWatchBesideAOneShotOne(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        ZooKeeper writer = ground.zookeeper();
        Inbox<String> recursive = new Inbox<>();
        Inbox<String> once = new Inbox<>();
        client.addWatch(
                ground.base, Ground.noting(recursive), AddWatchMode.PERSISTENT_RECURSIVE);
        client.getChildren(ground.base, Ground.noting(once));
        client.exists(ground.path("a"), Ground.noting(once));
        create(writer, ground.path("a"));
        create(writer, ground.path("a/b"));
        List<String> expected = new ArrayList<>();
        if (Info.MINOR < 9) {
            // Before 3.9 the client gives it the other's event about children as well.
            expected.add("NodeChildrenChanged " + ground.base);
        }
        expected.add("NodeCreated " + ground.path("a"));
        expected.add("NodeCreated " + ground.path("a/b"));
        Expect.equal(expected, told(client, recursive));
        Expect.equal(
                List.of("NodeChildrenChanged " + ground.base, "NodeCreated " + ground.path("a")),
                told(client, once));
    }

    @Check
    void whatWasMissedIsToldAfterAReconnect(Ground ground) throws Exception {
        Relay relay = ground.relay();
        ZooKeeper client = ground.zookeeper(relay.address());
        ZooKeeper writer = ground.zookeeper();
        Inbox<KeeperState> states = new Inbox<>();
        client.register(event -> states.put(event.getState()));
        for (String name : List.of("changed", "deleted", "grown", "same")) {
            create(writer, ground.path(name));
        }
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        client.getData(ground.path("changed"), watcher, null);
        client.exists(ground.path("deleted"), watcher);
        client.exists(ground.path("created"), watcher);
        client.getChildren(ground.path("grown"), watcher);
        client.getData(ground.path("same"), watcher, null);
        client.getChildren(ground.path("same"), watcher);
        client.exists(ground.path("absent"), watcher);
        relay.down();
        writer.setData(ground.path("changed"), Ground.bytes("1"), -1);
        writer.delete(ground.path("deleted"), -1);
        create(writer, ground.path("created"));
        create(writer, ground.path("grown/child"));
        states.await(KeeperState.Disconnected);
        relay.up();
        states.await(KeeperState.SyncConnected);
        Expect.equal(
                List.of(
                        "NodeChildrenChanged " + ground.path("grown"),
                        "NodeCreated " + ground.path("created"),
                        "NodeDataChanged " + ground.path("changed"),
                        "NodeDeleted " + ground.path("deleted")),
                told(client, inbox));
        // Those that had nothing to tell are still set.
        writer.setData(ground.path("same"), Ground.bytes("1"), -1);
        create(writer, ground.path("same/child"));
        create(writer, ground.path("absent"));
        Expect.equal(
                List.of(
                        "NodeChildrenChanged " + ground.path("same"),
                        "NodeCreated " + ground.path("absent"),
                        "NodeDataChanged " + ground.path("same")),
                told(client, inbox));
    }

    @Check
    void persistentWatchesAreSetAgainAfterAReconnect(Ground ground) throws Exception {
        Relay relay = ground.relay();
        ZooKeeper client = ground.zookeeper(relay.address() + ground.base);
        ZooKeeper writer = ground.zookeeper();
        Inbox<KeeperState> states = new Inbox<>();
        client.register(event -> states.put(event.getState()));
        create(writer, ground.path("one"));
        create(writer, ground.path("tree"));
        Inbox<String> inbox = new Inbox<>();
        client.addWatch("/one", Ground.noting(inbox), AddWatchMode.PERSISTENT);
        client.addWatch("/tree", Ground.noting(inbox), AddWatchMode.PERSISTENT_RECURSIVE);
        relay.cut();
        states.await(KeeperState.Disconnected);
        states.await(KeeperState.SyncConnected);
        Ground.settle(client);
        writer.setData(ground.path("one"), null, -1);
        create(writer, ground.path("one/child"));
        create(writer, ground.path("tree/a"));
        create(writer, ground.path("tree/a/b"));
        Expect.equal(
                List.of(
                        "NodeChildrenChanged /one",
                        "NodeCreated /tree/a",
                        "NodeCreated /tree/a/b",
                        "NodeDataChanged /one"),
                told(client, inbox));
    }

    @Check
    void manyWatchesAreSetAgainInPieces(Ground ground) throws Exception {
        Relay relay = ground.relay();
        ZooKeeper client = ground.zookeeper(relay.address());
        ZooKeeper writer = ground.zookeeper();
        Inbox<KeeperState> states = new Inbox<>();
        client.register(event -> states.put(event.getState()));
        Inbox<String> inbox = new Inbox<>();
        Watcher watcher = Ground.noting(inbox);
        // More than the 128 kB that the client puts into one setWatches.
        String filler = "x".repeat(800);
        int count = 400;
        List<String> expected = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            String path = ground.path(String.format("%03d%s", number, filler));
            client.exists(path, watcher, (code, asked, context, stat) -> {}, null);
            expected.add("NodeCreated " + path);
        }
        Ground.settle(client);
        relay.cut();
        states.await(KeeperState.Disconnected);
        states.await(KeeperState.SyncConnected);
        Ground.settle(client);
        for (String line : expected) {
            String path = line.substring("NodeCreated ".length());
            writer.create(
                    path,
                    null,
                    OPEN_ACL_UNSAFE,
                    PERSISTENT,
                    (code, asked, context, created) -> {},
                    null);
        }
        Ground.settle(writer);
        Expect.equal(expected, told(client, inbox));
    }

    @Check
    void theEventComesBeforeTheReplyThatShowsIt(Ground ground) throws Exception {
        ZooKeeper client = ground.zookeeper();
        Inbox<String> inbox = new Inbox<>();
        client.getData(ground.base, Ground.noting(inbox), null);
        client.setData(
                ground.base,
                null,
                -1,
                (code, path, context, stat) -> inbox.put("reply " + code),
                null);
        inbox.expect("NodeDataChanged " + ground.base, "reply 0");
    }
}
