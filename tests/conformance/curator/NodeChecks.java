import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.List;
import java.util.Set;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.utils.ZKPaths;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Nodes that keep themselves alive, and nodes that the server takes away. */
final class NodeChecks {
    private static final String CREATED = "NodeCreated ";
    private static final String DELETED = "NodeDeleted ";

    @Check
    void persistentNodeComesBackWhenItIsDeleted(Ground ground) throws Exception {
        CuratorFramework other = ground.curator();
        PersistentNode node =
                ground.own(
                        new PersistentNode(
                                ground.curator(),
                                CreateMode.PERSISTENT,
                                false,
                                ground.path("node"),
                                Ground.bytes("1")));
        node.start();
        Expect.that(node.waitForInitialCreate(Ground.DEADLINE_S, SECONDS), "it was not made");
        Inbox<String> inbox = new Inbox<>();
        other.delete().forPath(ground.path("node"));
        Expect.eventually(
                true,
                () ->
                        other.checkExists()
                                        .usingWatcher(Ground.noting(inbox))
                                        .forPath(ground.path("node"))
                                != null);
        Expect.equal("1", Ground.text(other.getData().forPath(ground.path("node"))));
        node.close();
        inbox.await(DELETED + ground.path("node"));
    }

    @Check
    void persistentNodeComesBackWithItsNewSession(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework other = ground.curator();
        PersistentNode node =
                ground.own(
                        new PersistentNode(
                                client,
                                CreateMode.EPHEMERAL,
                                false,
                                ground.path("node"),
                                Ground.bytes("1")));
        node.start();
        Expect.that(node.waitForInitialCreate(Ground.DEADLINE_S, SECONDS), "it was not made");
        Stat before = other.checkExists().forPath(ground.path("node"));
        Expect.equal(
                client.getZookeeperClient().getZooKeeper().getSessionId(),
                before.getEphemeralOwner());
        ground.expire(client);
        Expect.eventually(
                true,
                () -> {
                    Stat now = other.checkExists().forPath(ground.path("node"));
                    return now != null && now.getEphemeralOwner() != before.getEphemeralOwner();
                });
    }

    @Check
    void groupMembersSeeEachOther(Ground ground) throws Exception {
        GroupMember ann =
                ground.own(
                        new GroupMember(
                                ground.curator(), ground.path("group"), "ann", Ground.bytes("1")));
        CuratorFramework client = ground.curator();
        GroupMember bob =
                ground.own(
                        new GroupMember(client, ground.path("group"), "bob", Ground.bytes("2")));
        ann.start();
        bob.start();
        Expect.eventually(Set.of("ann", "bob"), () -> ann.getCurrentMembers().keySet());
        Expect.eventually(Set.of("ann", "bob"), () -> bob.getCurrentMembers().keySet());
        // Others may see her node before she herself has been told that it was made.
        Expect.eventually(
                true,
                () -> {
                    try {
                        ann.setThisData(Ground.bytes("3"));
                        return true;
                    } catch (IllegalStateException early) {
                        return false;
                    }
                });
        Expect.eventually("3", () -> Ground.text(bob.getCurrentMembers().get("ann")));
        bob.close();
        Expect.eventually(Set.of("ann"), () -> ann.getCurrentMembers().keySet());
    }

    @Check
    void containerIsReapedWhenItsLastChildIsGone(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        client.createContainers(ground.path("box"));
        client.create().forPath(ground.path("box/child"));
        Inbox<String> inbox = new Inbox<>();
        client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("box"));
        client.delete().forPath(ground.path("box/child"));
        inbox.expect(DELETED + ground.path("box"));
    }

    @Check
    void parentsAreMadeAsContainers(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        client.create()
                .creatingParentContainersIfNeeded()
                .forPath(ground.path("a/b/c"), Ground.bytes("x"));
        Inbox<String> inbox = new Inbox<>();
        client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("a"));
        client.delete().forPath(ground.path("a/b/c"));
        inbox.expect(DELETED + ground.path("a"));
        Expect.equal(List.of(), client.getChildren().forPath(ground.base));
    }

    @Check
    void containerWithoutAChildStays(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        client.create().withMode(CreateMode.CONTAINER).forPath(ground.path("never"));
        client.create().withMode(CreateMode.CONTAINER).forPath(ground.path("once"));
        client.create().forPath(ground.path("once/child"));
        Inbox<String> inbox = new Inbox<>();
        client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("once"));
        client.delete().forPath(ground.path("once/child"));
        inbox.expect(DELETED + ground.path("once"));
        Expect.equal(List.of("never"), client.getChildren().forPath(ground.base));
    }

    @Check
    void ttlNodeIsReapedWhenItIsOld(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Stat stat = new Stat();
        client.create()
                .withTtl(300)
                .storingStatIn(stat)
                .withMode(CreateMode.PERSISTENT_WITH_TTL)
                .forPath(ground.path("brief"), Ground.bytes("x"));
        String numbered =
                client.create()
                        .withTtl(600_000)
                        .withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL)
                        .forPath(ground.path("long-"));
        Expect.equal(ground.path("long-0000000001"), numbered);
        Expect.equal(0L, stat.getEphemeralOwner());
        Inbox<String> inbox = new Inbox<>();
        if (client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("brief"))
                != null) {
            inbox.expect(DELETED + ground.path("brief"));
        }
        Expect.equal(List.of("long-0000000001"), client.getChildren().forPath(ground.base));
    }

    @Check
    void persistentTtlNodeIsKeptWhileItIsTouched(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        CuratorFramework other = ground.curator();
        PersistentTtlNode node =
                ground.own(
                        new PersistentTtlNode(client, ground.path("node"), 600, Ground.bytes("x")));
        node.start();
        Expect.that(node.waitForInitialCreate(Ground.DEADLINE_S, SECONDS), "it was not made");
        // Its child is written again at every third of its time; a container keeps it.
        String touch = ground.path("node/" + PersistentTtlNode.DEFAULT_CHILD_NODE_NAME);
        Expect.eventually(
                true,
                () -> {
                    Stat stat = other.checkExists().forPath(touch);
                    return stat != null && stat.getVersion() >= 4;
                });
        Expect.equal("x", Ground.text(other.getData().forPath(ground.path("node"))));
        Inbox<String> inbox = new Inbox<>();
        other.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("node"));
        node.close();
        inbox.expect(DELETED + ground.path("node"));
    }

    @Check
    void protectedCreateSurvivesALostReply(Ground ground) throws Exception {
        Relay relay = ground.relay();
        CuratorFramework client = ground.curator(o -> o.connectString(relay.address()));
        relay.loseNextReply();
        String path =
                client.create()
                        .withProtection()
                        .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                        .forPath(ground.path("node-"));
        Expect.that(!relay.losing(), "no reply was lost");
        Expect.equal(
                List.of(ZKPaths.getNodeFromPath(path)),
                ground.curator().getChildren().forPath(ground.base));
    }

    @Check
    void idempotentWritesSurviveALostReply(Ground ground) throws Exception {
        Relay relay = ground.relay();
        CuratorFramework client = ground.curator(o -> o.connectString(relay.address()));
        String path = ground.path("node");
        relay.loseNextReply();
        client.create().idempotent().forPath(path, Ground.bytes("1"));
        Expect.that(!relay.losing(), "no reply to a create was lost");
        relay.loseNextReply();
        client.setData().idempotent().withVersion(0).forPath(path, Ground.bytes("2"));
        Expect.that(!relay.losing(), "no reply to a set was lost");
        Expect.equal(1, client.checkExists().forPath(path).getVersion());
        relay.loseNextReply();
        client.delete().idempotent().withVersion(1).forPath(path);
        Expect.that(!relay.losing(), "no reply to a delete was lost");
        Expect.equal(null, client.checkExists().forPath(path));
    }

    @Check
    void guaranteedDeleteSurvivesALostConnection(Ground ground) throws Exception {
        Relay relay = ground.relay();
        CuratorFramework client =
                ground.curator(
                        o ->
                                o.connectString(relay.address())
                                        .connectionTimeoutMs(500)
                                        .retryPolicy(new RetryNTimes(1, 1)));
        CuratorFramework other = ground.curator();
        other.create().forPath(ground.path("node"));
        Inbox<String> inbox = new Inbox<>();
        other.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path("node"));
        relay.down();
        Expect.raises(
                KeeperException.ConnectionLossException.class,
                () -> client.delete().guaranteed().forPath(ground.path("node")));
        relay.up();
        inbox.expect(DELETED + ground.path("node"));
    }

    @Check
    void createOrSetDoesWhatIsNeeded(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Stat stat = new Stat();
        client.create().orSetData().storingStatIn(stat).forPath(ground.path("n"), new byte[] {1});
        Expect.equal(0, stat.getVersion());
        client.create().orSetData().storingStatIn(stat).forPath(ground.path("n"), new byte[] {2});
        Expect.equal(1, stat.getVersion());
        Expect.raises(
                KeeperException.BadVersionException.class,
                () -> client.create().orSetData(7).forPath(ground.path("n"), new byte[] {3}));
        client.create().withMode(CreateMode.EPHEMERAL).forPath(ground.path("e"));
        KeeperException refused =
                Expect.raises(
                        KeeperException.NoChildrenForEphemeralsException.class,
                        () -> client.create().forPath(ground.path("e/child")));
        Expect.equal(ground.path("e/child"), refused.getPath());
    }

    @Check
    void nodesAreCreatedInTheirParentsOrder(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        for (String name : List.of("a", "a/b")) {
            client.checkExists().usingWatcher(Ground.noting(inbox)).forPath(ground.path(name));
        }
        client.create().creatingParentsIfNeeded().forPath(ground.path("a/b"));
        inbox.expect(CREATED + ground.path("a"), CREATED + ground.path("a/b"));
        client.delete().quietly().forPath(ground.path("missing"));
        client.delete().deletingChildrenIfNeeded().forPath(ground.path("a"));
        Expect.equal(null, client.checkExists().forPath(ground.path("a")));
    }
}
