import static org.apache.zookeeper.CreateMode.PERSISTENT;
import static org.apache.zookeeper.ZooDefs.Ids.CREATOR_ALL_ACL;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/**
 * Curator and Apache's Java client, authenticated by SASL as the JAAS file says, below the node
 * {@code BASE} of the server at {@code HOST:PORT}. Prints a line for each thing that holds.
 */
public final class Sasl {
    private static final int SESSION_MS = 20_000;

    private final String address;
    private final String base;

    private Sasl(String address, String base) {
        this.address = address;
        this.base = base;
    }

    public static void main(String[] arguments) throws Exception {
        Sasl sasl = new Sasl(arguments[0], arguments[1]);
        sasl.curator();
        sasl.without();
        sasl.stranger();
        System.exit(0);
    }

    /** What Curator creates belongs to the user, and so does what its recipes create. */
    private void curator() throws Exception {
        ACLProvider own =
                new ACLProvider() {
                    @Override
                    public List<ACL> getDefaultAcl() {
                        return CREATOR_ALL_ACL;
                    }

                    @Override
                    public List<ACL> getAclForPath(String path) {
                        return CREATOR_ALL_ACL;
                    }
                };
        try (CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(address)
                        .sessionTimeoutMs(SESSION_MS)
                        .connectionTimeoutMs(SESSION_MS)
                        .aclProvider(own)
                        .retryPolicy(new RetryNTimes(30, 100))
                        .build()) {
            client.start();
            client.create().withMode(PERSISTENT).forPath(base + "/his");
            Id owner = client.getACL().forPath(base + "/his").get(0).getId();
            expect(owner.equals(new Id("sasl", "bob")), "it belongs to " + owner);
            InterProcessMutex mutex = new InterProcessMutex(client, base + "/lock");
            expect(mutex.acquire(10, TimeUnit.SECONDS), "the lock is not acquired");
            owner = client.getACL().forPath(base + "/lock").get(0).getId();
            expect(owner.equals(new Id("sasl", "bob")), "it belongs to " + owner);
            mutex.release();
        }
        System.out.println("curator is bob");
    }

    /** A client that does not authenticate is nobody. */
    private void without() throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.ENABLE_CLIENT_SASL_KEY, "false");
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client =
                new ZooKeeper(
                        address,
                        SESSION_MS,
                        event -> {
                            if (event.getState() == KeeperState.SyncConnected) {
                                connected.countDown();
                            }
                        },
                        config);
        expect(connected.await(20, TimeUnit.SECONDS), "no connection");
        try {
            client.getData(base + "/his", false, null);
            throw new AssertionError("everybody may read it");
        } catch (KeeperException.NoAuthException refused) {
            System.out.println("without SASL there is nobody");
        }
        client.close();
    }

    /** A client with the wrong password learns that it has failed. */
    private void stranger() throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, "Stranger");
        CountDownLatch failed = new CountDownLatch(1);
        ZooKeeper client =
                new ZooKeeper(
                        address,
                        SESSION_MS,
                        event -> {
                            if (event.getState() == KeeperState.AuthFailed) {
                                failed.countDown();
                            }
                        },
                        config);
        expect(failed.await(20, TimeUnit.SECONDS), "no failure");
        try {
            client.getData("/", false, null);
            throw new AssertionError("it is served");
        } catch (KeeperException.AuthFailedException | KeeperException.ConnectionLossException
                | KeeperException.SessionExpiredException refused) {
            System.out.println("a stranger has failed");
        }
        client.close();
    }

    private static void expect(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }
}
