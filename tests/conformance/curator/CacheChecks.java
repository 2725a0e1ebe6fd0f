import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;

/** Caches show what the server has: persistent watches in the new one, one-shot in the old ones. */
@SuppressWarnings("deprecation")
final class CacheChecks {
    private static CuratorCache follow(
            Ground ground,
            CuratorFramework client,
            Inbox<String> inbox,
            CuratorCache.Options... options) {
        CuratorCache cache = ground.own(CuratorCache.build(client, ground.base, options));
        cache.listenable()
                .addListener(
                        CuratorCacheListener.builder()
                                .forCreates(node -> inbox.put("created " + shown(node)))
                                .forChanges((old, node) -> inbox.put("changed " + shown(node)))
                                .forDeletes(node -> inbox.put("deleted " + node.getPath()))
                                .forInitialized(() -> inbox.put("initialized"))
                                .build());
        cache.start();
        return cache;
    }

    private static String shown(ChildData node) {
        return node.getPath() + "=" + Ground.text(node.getData());
    }

    private static Map<String, String> content(CuratorCache cache) {
        Map<String, String> content = new TreeMap<>();
        cache.stream().forEach(node -> content.put(node.getPath(), Ground.text(node.getData())));
        return content;
    }

    @Check
    void curatorCacheFollowsATree(Ground ground) throws Exception {
        CuratorFramework writer = ground.curator();
        writer.setData().forPath(ground.base, Ground.bytes("root"));
        writer.create().forPath(ground.path("old"), Ground.bytes("0"));
        Inbox<String> inbox = new Inbox<>();
        CuratorCache cache = follow(ground, ground.curator(), inbox);
        inbox.await("initialized");
        writer.create().creatingParentsIfNeeded().forPath(ground.path("a/b/c"), Ground.bytes("1"));
        inbox.await("created " + ground.path("a/b/c=1"));
        writer.setData().forPath(ground.path("a/b/c"), Ground.bytes("2"));
        inbox.expect("changed " + ground.path("a/b/c=2"));
        writer.delete().forPath(ground.path("a/b/c"));
        inbox.expect("deleted " + ground.path("a/b/c"));
        writer.delete().deletingChildrenIfNeeded().forPath(ground.path("a"));
        inbox.expect("deleted " + ground.path("a/b"), "deleted " + ground.path("a"));
        Expect.equal(Map.of(ground.base, "root", ground.path("old"), "0"), content(cache));
    }

    @Check
    void curatorCacheFollowsOneNode(Ground ground) throws Exception {
        CuratorFramework writer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        CuratorCache.Options single = CuratorCache.Options.SINGLE_NODE_CACHE;
        CuratorCache cache = follow(ground, ground.curator(), inbox, single);
        inbox.await("initialized");
        writer.create().forPath(ground.path("child"));
        writer.setData().forPath(ground.base, Ground.bytes("1"));
        inbox.expect("changed " + ground.base + "=1");
        Expect.equal(1, cache.size());
        writer.delete().deletingChildrenIfNeeded().forPath(ground.base);
        inbox.expect("deleted " + ground.base);
        writer.create().forPath(ground.base, Ground.bytes("2"));
        inbox.expect("created " + ground.base + "=2");
    }

    @Check
    void curatorCacheCatchesUpAfterALostConnection(Ground ground) throws Exception {
        CuratorFramework writer = ground.curator();
        writer.create().forPath(ground.path("kept"), Ground.bytes("0"));
        writer.create().forPath(ground.path("gone"), Ground.bytes("0"));
        Relay relay = ground.relay();
        Inbox<String> inbox = new Inbox<>();
        CuratorCache cache =
                follow(ground, ground.curator(o -> o.connectString(relay.address())), inbox);
        inbox.await("initialized");
        relay.down();
        writer.setData().forPath(ground.path("kept"), Ground.bytes("1"));
        writer.delete().forPath(ground.path("gone"));
        writer.create().creatingParentsIfNeeded().forPath(ground.path("new/deep"));
        writer.setData().forPath(ground.path("new/deep"), Ground.bytes("2"));
        relay.up();
        Map<String, String> expected = new TreeMap<>();
        for (String path : new String[] {"kept", "new", "new/deep"}) {
            byte[] data = writer.getData().forPath(ground.path(path));
            expected.put(ground.path(path), Ground.text(data));
        }
        expected.put(ground.base, Ground.text(writer.getData().forPath(ground.base)));
        Expect.eventually(expected, () -> content(cache));
        // Its watch is still there, or there again.
        writer.setData().forPath(ground.path("kept"), Ground.bytes("3"));
        inbox.await("changed " + ground.path("kept=3"));
    }

    @Check
    void nodeCacheFollowsItsNode(Ground ground) throws Exception {
        CuratorFramework writer = ground.curator();
        NodeCache cache = ground.own(new NodeCache(ground.curator(), ground.path("node")));
        Inbox<String> inbox = new Inbox<>();
        cache.getListenable()
                .addListener(
                        () -> {
                            ChildData node = cache.getCurrentData();
                            inbox.put(node == null ? "none" : Ground.text(node.getData()));
                        });
        cache.start(true);
        writer.create().forPath(ground.path("node"), Ground.bytes("1"));
        inbox.expect("1");
        writer.setData().forPath(ground.path("node"), Ground.bytes("2"));
        inbox.expect("2");
        writer.delete().forPath(ground.path("node"));
        inbox.expect("none");
        writer.create().forPath(ground.path("node"), Ground.bytes("3"));
        inbox.expect("3");
    }

    @Check
    void pathChildrenCacheFollowsChildren(Ground ground) throws Exception {
        CuratorFramework writer = ground.curator();
        writer.create().forPath(ground.path("old"), Ground.bytes("0"));
        PathChildrenCache cache =
                ground.own(new PathChildrenCache(ground.curator(), ground.base, true));
        Inbox<String> inbox = new Inbox<>();
        cache.getListenable()
                .addListener(
                        (client, event) ->
                                inbox.put(
                                        event.getData() == null
                                                ? event.getType().toString()
                                                : event.getType() + " " + shown(event.getData())));
        cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
        inbox.await("INITIALIZED");
        writer.create().forPath(ground.path("new"), Ground.bytes("1"));
        inbox.await("CHILD_ADDED " + ground.path("new=1"));
        writer.setData().forPath(ground.path("new"), Ground.bytes("2"));
        inbox.await("CHILD_UPDATED " + ground.path("new=2"));
        writer.delete().forPath(ground.path("old"));
        inbox.await("CHILD_REMOVED " + ground.path("old=0"));
        Expect.equal(1, cache.getCurrentData().size());
    }

    @Check
    void treeCacheFollowsATree(Ground ground) throws Exception {
        CuratorFramework writer = ground.curator();
        TreeCache cache = ground.own(new TreeCache(ground.curator(), ground.base));
        Inbox<String> inbox = new Inbox<>();
        cache.getListenable()
                .addListener(
                        (client, event) ->
                                inbox.put(
                                        event.getData() == null
                                                ? event.getType().toString()
                                                : event.getType() + " " + shown(event.getData())));
        cache.start();
        inbox.await("INITIALIZED");
        writer.create().creatingParentsIfNeeded().forPath(ground.path("a/b"), Ground.bytes("1"));
        inbox.await("NODE_ADDED " + ground.path("a/b=1"));
        writer.setData().forPath(ground.path("a/b"), Ground.bytes("2"));
        inbox.await("NODE_UPDATED " + ground.path("a/b=2"));
        writer.delete().forPath(ground.path("a/b"));
        inbox.await("NODE_REMOVED " + ground.path("a/b=2"));
        Expect.equal(Map.of(), cache.getCurrentChildren(ground.path("a")));
    }

    @Check
    void aCacheOfAHiddenTreeStaysEmpty(Ground ground) throws Exception {
        CuratorFramework owner =
                ground.curator(o -> o.authorization("digest", Ground.bytes("ann:secret")));
        owner.setACL()
                .withACL(Ids.CREATOR_ALL_ACL)
                .forPath(ground.base);
        CuratorFramework stranger = ground.curator();
        Expect.raises(
                KeeperException.NoAuthException.class,
                () -> stranger.getChildren().forPath(ground.base));
        Inbox<String> inbox = new Inbox<>();
        CuratorCache cache = follow(ground, stranger, inbox);
        inbox.await("initialized");
        Expect.equal(0, cache.size());
    }
}
