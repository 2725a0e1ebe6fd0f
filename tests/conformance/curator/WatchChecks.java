import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.WatcherRemoveCuratorFramework;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;

/** Watches as Curator sets and removes them. */
final class WatchChecks {
    private static Watcher watch(
            CuratorFramework client, Ground ground, AddWatchMode mode, Inbox<String> inbox)
            throws Exception {
        Watcher watcher = Ground.noting(inbox);
        client.watchers().add().withMode(mode).usingWatcher(watcher).forPath(ground.base);
        return watcher;
    }

    private static void settle(CuratorFramework client) throws Exception {
        Ground.settle(client.getZookeeperClient().getZooKeeper());
    }

    @Check
    void persistentWatchStaysOnItsNode(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework writer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        watch(client, ground, AddWatchMode.PERSISTENT, inbox);
        for (int round = 0; round < 2; round++) {
            writer.setData().forPath(ground.base, Ground.bytes("x"));
            inbox.expect("NodeDataChanged " + ground.base);
            writer.create().forPath(ground.path("child"));
            inbox.expect("NodeChildrenChanged " + ground.base);
            writer.setData().forPath(ground.path("child"), Ground.bytes("x"));
            writer.delete().forPath(ground.path("child"));
            inbox.expect("NodeChildrenChanged " + ground.base);
        }
        writer.delete().forPath(ground.base);
        inbox.expect("NodeDeleted " + ground.base);
        writer.create().forPath(ground.base);
        inbox.expect("NodeCreated " + ground.base);
    }

    @Check
    void recursiveWatchTellsOfEverythingBelow(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework writer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        watch(client, ground, AddWatchMode.PERSISTENT_RECURSIVE, inbox);
        writer.create().creatingParentsIfNeeded().forPath(ground.path("a/b"));
        writer.setData().forPath(ground.path("a/b"), Ground.bytes("x"));
        writer.delete().deletingChildrenIfNeeded().forPath(ground.base);
        inbox.expect(
                "NodeCreated " + ground.path("a"),
                "NodeCreated " + ground.path("a/b"),
                "NodeDataChanged " + ground.path("a/b"),
                "NodeDeleted " + ground.path("a/b"),
                "NodeDeleted " + ground.path("a"),
                "NodeDeleted " + ground.base);
    }

    @Check
    void removedWatchIsSilent(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework writer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        for (AddWatchMode mode : AddWatchMode.values()) {
            Watcher watcher = watch(client, ground, mode, inbox);
            client.watchers().remove(watcher).forPath(ground.base);
            inbox.expect("PersistentWatchRemoved " + ground.base);
            writer.setData().forPath(ground.base, Ground.bytes("x"));
            writer.sync().forPath(ground.base);
            settle(client);
            Expect.equal(List.of(), inbox.drain());
        }
    }

    @Check
    void allWatchesOfANodeAreRemovedAtOnce(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework writer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        watch(client, ground, AddWatchMode.PERSISTENT, inbox);
        client.getData().usingWatcher(Ground.noting(inbox)).forPath(ground.base);
        client.getChildren().usingWatcher(Ground.noting(inbox)).forPath(ground.base);
        client.watchers().removeAll().forPath(ground.base);
        settle(client);
        List<String> told = inbox.drain();
        told.sort(null);
        Expect.equal(
                List.of(
                        "ChildWatchRemoved " + ground.base,
                        "DataWatchRemoved " + ground.base,
                        "PersistentWatchRemoved " + ground.base),
                told);
        writer.setData().forPath(ground.base, Ground.bytes("x"));
        writer.create().forPath(ground.path("child"));
        settle(client);
        Expect.equal(List.of(), inbox.drain());
        Expect.raises(
                KeeperException.NoWatcherException.class,
                () -> client.watchers().removeAll().forPath(ground.base));
        client.watchers().removeAll().quietly().forPath(ground.base);
    }

    @Check
    void oneShotWatchesFireOnce(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework writer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        client.getData().usingWatcher(Ground.noting(inbox)).forPath(ground.base);
        client.getChildren().usingWatcher(Ground.noting(inbox)).forPath(ground.base);
        client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("child"));
        for (int round = 0; round < 2; round++) {
            writer.setData().forPath(ground.base, Ground.bytes("x"));
            writer.create().forPath(ground.path("child"));
            writer.delete().forPath(ground.path("child"));
        }
        inbox.expect("NodeDataChanged " + ground.base);
        inbox.expect("NodeCreated " + ground.path("child"));
        inbox.expect("NodeChildrenChanged " + ground.base);
        settle(client);
        Expect.equal(List.of(), inbox.drain());
    }

    @Check
    void aClientTakesItsWatchesWithIt(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        WatcherRemoveCuratorFramework own = client.newWatcherRemoveCuratorFramework();
        Inbox<String> inbox = new Inbox<>();
        own.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("missing"));
        own.getData().usingWatcher(Ground.noting(inbox)).forPath(ground.base);
        own.removeWatchers();
        List<String> told = new ArrayList<>(List.of(inbox.next(), inbox.next()));
        told.sort(null);
        Expect.equal(
                List.of(
                        "DataWatchRemoved " + ground.base,
                        "DataWatchRemoved " + ground.path("missing")),
                told);
    }

    @Check
    void persistentWatcherIsSetAgainAfterALostConnection(Ground ground) throws Exception {
        Relay relay = ground.relay();
        CuratorFramework client = ground.curator(o -> o.connectString(relay.address()));
        CuratorFramework writer = ground.curator();
        PersistentWatcher watcher =
                ground.own(new PersistentWatcher(client, ground.base, true));
        Inbox<String> inbox = new Inbox<>();
        AtomicInteger resets = new AtomicInteger();
        watcher.getListenable().addListener(Ground.noting(inbox));
        watcher.getResetListenable().addListener(resets::incrementAndGet);
        watcher.start();
        Expect.eventually(true, () -> resets.get() > 0);
        writer.create().forPath(ground.path("a"));
        inbox.expect("NodeCreated " + ground.path("a"));
        relay.down();
        int before = resets.get();
        writer.create().forPath(ground.path("missed"));
        relay.up();
        // It is not told what happened meanwhile, but that it was not watching for a while.
        Expect.eventually(true, () -> resets.get() > before);
        AtomicInteger number = new AtomicInteger();
        Expect.eventually(
                true,
                () -> {
                    String path = ground.path("later" + number.incrementAndGet());
                    writer.create().forPath(path);
                    settle(client);
                    return inbox.drain().contains("NodeCreated " + path);
                });
    }
}
