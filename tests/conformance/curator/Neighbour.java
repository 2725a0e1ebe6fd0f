import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;

/**
 * Takes locks for somebody else, who says so on the standard input: {@code take NAME KIND PATH},
 * where the kind is a mutex, read, write, or a number of leases, and {@code release NAME}. It says
 * {@code held NAME} and {@code released NAME}. Each has a thread of its own, as Curator wants it.
 *
 * <p>The holder of the kind {@code revocable} says {@code asked NAME} when it is asked to let go.
 * {@code revoke NAME PATH} asks the first participant of a mutex, and says {@code revoked NAME}.
 */
final class Neighbour {
    private final CuratorFramework client;
    private final Map<String, CountDownLatch> released = new ConcurrentHashMap<>();

    private Neighbour(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        try (Ground ground = new Ground(arguments[0], "/")) {
            Neighbour neighbour = new Neighbour(ground.curator());
            BufferedReader orders =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            String order;
            while ((order = orders.readLine()) != null) {
                neighbour.obey(ground, order.split(" "));
            }
        }
    }

    private void obey(Ground ground, String[] words) {
        String name = words[1];
        if (words[0].equals("release")) {
            released.get(name).countDown();
            return;
        }
        if (words[0].equals("revoke")) {
            ground.beside(
                    () -> {
                        revoke(words[2]);
                        say("revoked", name);
                        return null;
                    });
            return;
        }
        released.put(name, new CountDownLatch(1));
        ground.beside(
                () -> {
                    hold(name, words[2], words[3]);
                    return null;
                });
    }

    private void hold(String name, String kind, String path) throws Exception {
        if (Character.isDigit(kind.charAt(0))) {
            int leases = Integer.parseInt(kind);
            Lease lease = new InterProcessSemaphoreV2(client, path, leases).acquire();
            say("held", name);
            released.get(name).await();
            lease.close();
        } else {
            InterProcessLock lock = lock(name, kind, path);
            Expect.that(lock.acquire(Ground.DEADLINE_S, SECONDS), "it was not to be had");
            say("held", name);
            released.get(name).await();
            lock.release();
        }
        say("released", name);
    }

    private void revoke(String path) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        Revoker.attemptRevoke(client, mutex.getParticipantNodes().iterator().next());
    }

    private InterProcessLock lock(String name, String kind, String path) {
        switch (kind) {
            case "revocable":
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                mutex.makeRevocable(lock -> say("asked", name));
                return mutex;
            case "read":
                return new InterProcessReadWriteLock(client, path).readLock();
            case "write":
                return new InterProcessReadWriteLock(client, path).writeLock();
            default:
                return new InterProcessMutex(client, path);
        }
    }

    private static void say(String word, String name) {
        synchronized (System.out) {
            System.out.println(word + " " + name);
            System.out.flush();
        }
    }
}
