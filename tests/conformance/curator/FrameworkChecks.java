import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.CuratorTempFramework;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.api.CuratorEvent;
import org.apache.curator.framework.api.CuratorEventType;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.auth.DigestAuthenticationProvider;

/** Curator's own client: namespaces, the background, permissions, compression. */
final class FrameworkChecks {
    private static final byte[] ANN = Ground.bytes("ann:secret");
    private static final byte[] BOB = Ground.bytes("bob:secret");

    @Check
    void aNamespaceIsMadeAndHidden(Ground ground) throws Exception {
        String namespace = ground.base.substring(1) + "/inner";
        CuratorFramework inner = ground.curator(o -> o.namespace(namespace));
        CuratorFramework outer = ground.curator();
        Inbox<String> inbox = new Inbox<>();
        inner.checkExists().usingWatcher(Ground.noting(inbox)).forPath("/node");
        Expect.equal("/node", inner.create().forPath("/node", Ground.bytes("1")));
        inbox.expect("NodeCreated /node");
        Expect.equal("1", Ground.text(outer.getData().forPath(ground.path("inner/node"))));
        Expect.equal(List.of("node"), inner.getChildren().forPath("/"));
        CuratorFramework other = outer.usingNamespace(namespace);
        Expect.equal("1", Ground.text(other.getData().forPath("/node")));
    }

    private static CuratorEvent told(CompletableFuture<CuratorEvent> future) throws Exception {
        return future.get(Ground.DEADLINE_S, SECONDS);
    }

    @Check
    void backgroundOperationsReportTheirOutcome(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Inbox<CuratorEvent> inbox = new Inbox<>();
        String path = ground.path("node");
        client.create().inBackground((c, event) -> inbox.put(event)).forPath(path, new byte[] {1});
        client.create().inBackground((c, event) -> inbox.put(event)).forPath(path);
        client.setData().inBackground((c, event) -> inbox.put(event)).forPath(path, new byte[] {2});
        client.getData().inBackground((c, event) -> inbox.put(event), "mine").forPath(path);
        client.checkExists().inBackground((c, event) -> inbox.put(event)).forPath(path);
        client.getChildren().inBackground((c, event) -> inbox.put(event)).forPath(ground.base);
        client.getACL().inBackground((c, event) -> inbox.put(event)).forPath(path);
        client.sync().inBackground((c, event) -> inbox.put(event)).forPath(path);
        client.delete().inBackground((c, event) -> inbox.put(event)).forPath(path);
        client.delete().inBackground((c, event) -> inbox.put(event)).forPath(path);

        CuratorEvent created = inbox.next();
        Expect.equal(CuratorEventType.CREATE, created.getType());
        Expect.equal(0, created.getResultCode());
        Expect.equal(path, created.getName());
        Expect.equal(KeeperException.Code.NODEEXISTS.intValue(), inbox.next().getResultCode());
        Expect.equal(1, inbox.next().getStat().getVersion());
        CuratorEvent read = inbox.next();
        Expect.equal("mine", read.getContext());
        Expect.equal((byte) 2, read.getData()[0]);
        Expect.equal(1, inbox.next().getStat().getVersion());
        Expect.equal(List.of("node"), inbox.next().getChildren());
        Expect.equal(Ids.OPEN_ACL_UNSAFE, inbox.next().getACLList());
        Expect.equal(CuratorEventType.SYNC, inbox.next().getType());
        Expect.equal(0, inbox.next().getResultCode());
        Expect.equal(KeeperException.Code.NONODE.intValue(), inbox.next().getResultCode());
    }

    @Check
    void anAclProviderDecidesWhoMayWhat(Ground ground) throws Exception {
        // The client looks for null in it, which some lists do not take.
        List<ACL> readOnly =
                Arrays.asList(
                        new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE),
                        new ACL(Perms.ALL, Ids.AUTH_IDS));
        ACLProvider provider =
                new ACLProvider() {
                    @Override
                    public List<ACL> getDefaultAcl() {
                        return readOnly;
                    }

                    @Override
                    public List<ACL> getAclForPath(String path) {
                        return readOnly;
                    }
                };
        CuratorFramework ann =
                ground.curator(o -> o.aclProvider(provider).authorization("digest", ANN));
        CuratorFramework stranger = ground.curator();
        String path = ground.path("a/b");
        ann.create().creatingParentsIfNeeded().forPath(path, Ground.bytes("1"));
        // `auth` is written down as the identity it stood for.
        Id id = new Id("digest", DigestAuthenticationProvider.generateDigest("ann:secret"));
        Expect.equal(
                List.of(new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE), new ACL(Perms.ALL, id)),
                ann.getACL().forPath(path));
        Expect.equal("1", Ground.text(stranger.getData().forPath(path)));
        Expect.raises(
                KeeperException.NoAuthException.class,
                () -> stranger.setData().forPath(path, Ground.bytes("2")));
        Expect.raises(
                KeeperException.NoAuthException.class, () -> stranger.delete().forPath(path));
        ann.delete().forPath(path);
    }

    @Check
    void permissionsFollowSetAcl(Ground ground) throws Exception {
        CuratorFramework ann = ground.curator(o -> o.authorization("digest", ANN));
        CuratorFramework bob = ground.curator(o -> o.authorization("digest", BOB));
        String path = ground.path("node");
        ann.create().withACL(Ids.CREATOR_ALL_ACL).forPath(path, Ground.bytes("1"));
        Expect.raises(KeeperException.NoAuthException.class, () -> bob.getData().forPath(path));
        Expect.raises(
                KeeperException.NoAuthException.class,
                () -> bob.setACL().withACL(Ids.OPEN_ACL_UNSAFE).forPath(path));
        Stat stat = ann.setACL().withVersion(0).withACL(Ids.OPEN_ACL_UNSAFE).forPath(path);
        Expect.equal(1, stat.getAversion());
        Expect.equal("1", Ground.text(bob.getData().forPath(path)));
        Expect.raises(
                KeeperException.InvalidACLException.class,
                () ->
                        ground.curator()
                                .create()
                                .withACL(Ids.CREATOR_ALL_ACL)
                                .forPath(ground.path("nobody's")));
    }

    @Check
    void compressedDataComesBack(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        byte[] data = new byte[100_000];
        client.create().compressed().forPath(ground.path("node"), data);
        Expect.that(
                client.checkExists().forPath(ground.path("node")).getDataLength() < 1_000,
                "it was not compressed");
        Expect.equal(
                data.length, client.getData().decompressed().forPath(ground.path("node")).length);
    }

    @Check
    void theConfigurationIsEmptyAndHarmsNobody(Ground ground) throws Exception {
        // The ensemble tracker reads it at the start, watches it, and must not lose its servers.
        CuratorFramework client = ground.curator(o -> o.ensembleTracker(true));
        Expect.equal(0, client.getConfig().forEnsemble().length);
        Expect.equal(0, client.getCurrentConfig().getAllMembers().size());
        Expect.equal(ground.address, client.getZookeeperClient().getCurrentConnectionString());
        CompletableFuture<CuratorEvent> future = new CompletableFuture<>();
        client.getConfig().inBackground((c, event) -> future.complete(event)).forEnsemble();
        Expect.equal(0, told(future).getResultCode());
    }

    @Check
    void aReconfigurationIsRefused(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Expect.raises(
                KeeperException.ReconfigDisabledException.class,
                () -> client.reconfig().joining("server.2=127.0.0.1:1:2;3").forEnsemble());
    }

    @Check
    void aTemporaryClientServesItsTurn(Ground ground) throws Exception {
        CuratorTempFramework client =
                ground.own(
                        CuratorFrameworkFactory.builder()
                                .connectString(ground.address)
                                .retryPolicy(new RetryNTimes(3, 100))
                                .buildTemp(1, SECONDS));
        client.inTransaction()
                .create()
                .withMode(CreateMode.PERSISTENT)
                .forPath(ground.path("node"), Ground.bytes("1"))
                .and()
                .commit();
        Expect.equal("1", Ground.text(client.getData().forPath(ground.path("node"))));
    }
}
