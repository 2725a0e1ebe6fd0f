import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

/** What a check stands on: a path of its own, and clients, relays and threads that end with it. */
final class Ground implements AutoCloseable {
    static final long DEADLINE_S = 30;
    static final int SESSION_MS = 50_000;

    private static final BufferedReader ANSWERS =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    /** Where the server is. */
    final String address;

    /** The node that belongs to this check; it has no children yet. */
    final String base;

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();

    Ground(String address, String base) {
        this.address = address;
        this.base = base;
    }

    String path(String name) {
        return base + "/" + name;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** Closes this when the check is over, before what was opened earlier. */
    synchronized <T extends AutoCloseable> T own(T resource) {
        opened.push(resource);
        return resource;
    }

    CuratorFramework curator() throws Exception {
        return curator(builder -> builder);
    }

    /** Returns a started and connected Curator client. */
    CuratorFramework curator(UnaryOperator<CuratorFrameworkFactory.Builder> options)
            throws Exception {
        CuratorFrameworkFactory.Builder builder =
                CuratorFrameworkFactory.builder()
                        .connectString(address)
                        .sessionTimeoutMs(SESSION_MS)
                        .connectionTimeoutMs(SESSION_MS)
                        .waitForShutdownTimeoutMs(1_000)
                        .retryPolicy(new RetryNTimes(300, 100));
        CuratorFramework client = own(options.apply(builder).build());
        client.start();
        Expect.that(client.blockUntilConnected((int) DEADLINE_S, TimeUnit.SECONDS), "no session");
        return client;
    }

    ZooKeeper zookeeper() throws Exception {
        return zookeeper(address);
    }

    /** Returns a connected client of Apache's. */
    ZooKeeper zookeeper(String connectString) throws Exception {
        CompletableFuture<WatchedEvent> first = new CompletableFuture<>();
        ZooKeeper client = own(new ZooKeeper(connectString, SESSION_MS, first::complete));
        KeeperState state = first.get(DEADLINE_S, TimeUnit.SECONDS).getState();
        Expect.equal(KeeperState.SyncConnected, state);
        return client;
    }

    /** Goes on with a session; says in which state the server has put the client. */
    KeeperState attach(long session, byte[] password, Inbox<ZooKeeper> attached) throws Exception {
        CompletableFuture<WatchedEvent> first = new CompletableFuture<>();
        ZooKeeper client =
                own(new ZooKeeper(address, SESSION_MS, first::complete, session, password));
        attached.put(client);
        return first.get(DEADLINE_S, TimeUnit.SECONDS).getState();
    }

    /** Ends the session of a client on the server, as if it had been silent for too long. */
    void expire(ZooKeeper victim) throws Exception {
        long session = victim.getSessionId();
        byte[] password = victim.getSessionPasswd();
        Inbox<ZooKeeper> attached = new Inbox<>();
        // The victim may come back before the close is sent, and a close through a connection that
        // the session has left may be refused: so it is done when the server says so.
        while (attach(session, password, attached) != KeeperState.Expired) {
            attached.next().close();
        }
    }

    void expire(CuratorFramework victim) throws Exception {
        expire(victim.getZookeeperClient().getZooKeeper());
    }

    Relay relay() throws IOException {
        return own(new Relay(address));
    }

    /** Runs something beside the check. */
    <T> Future<T> beside(Callable<T> action) {
        FutureTask<T> task = new FutureTask<>(action);
        Thread thread = new Thread(task, base + " beside");
        thread.setDaemon(true);
        thread.start();
        own(() -> task.cancel(true));
        return task;
    }

    static <T> T result(Future<T> future) throws Exception {
        return future.get(DEADLINE_S, TimeUnit.SECONDS);
    }

    /** A watcher that notes {@code Type path} of each event about a node. */
    static Watcher noting(Inbox<String> inbox) {
        return event -> {
            if (event.getType() != EventType.None) {
                inbox.put(event.getType() + " " + event.getPath());
            }
        };
    }

    /** Waits until the client has handed out every event that the server has sent by now. */
    static void settle(ZooKeeper client) throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        client.sync("/", (code, path, context) -> done.complete(code), null);
        Expect.equal(0, done.get(DEADLINE_S, TimeUnit.SECONDS));
    }

    static void settle(CuratorFramework client) throws Exception {
        settle(client.getZookeeperClient().getZooKeeper());
    }

    /** Asks whoever started this program to restart the server, and waits until it serves. */
    void restartServer() throws IOException {
        please("restart the server");
    }

    /** Asks whoever started this program for something, and waits until it is done. */
    void please(String request) throws IOException {
        Expect.equal("done", ask(request));
    }

    /** The same, for something that is answered; only from checks that run alone. */
    String ask(String request) throws IOException {
        System.out.println("please " + request);
        System.out.flush();
        return ANSWERS.readLine();
    }

    @Override
    public void close() throws Exception {
        while (true) {
            AutoCloseable resource;
            synchronized (this) {
                resource = opened.poll();
            }
            if (resource == null) {
                return;
            }
            try {
                resource.close();
            } catch (IllegalStateException alreadyClosed) {
                // A check may close what it opened.
            }
        }
    }
}
