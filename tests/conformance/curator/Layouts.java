import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/**
 * Leaves one of each recipe below a path, with holders and waiters, says {@code there}, and stays
 * until its standard input ends: for somebody who looks at the nodes.
 */
final class Layouts {
    private final Ground ground;
    private final String base;
    private final List<CuratorFramework> clients = new ArrayList<>();
    private final CountDownLatch never = new CountDownLatch(1);

    private Layouts(Ground ground, String base) throws Exception {
        this.ground = ground;
        this.base = base;
        for (int number = 0; number < 3; number++) {
            clients.add(ground.curator());
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Ground ground = new Ground(arguments[0], arguments[1])) {
            Layouts layouts = new Layouts(ground, arguments[1]);
            layouts.locks();
            layouts.elections();
            layouts.queues();
            layouts.groups();
            System.out.println("there");
            System.out.flush();
            while (System.in.read() >= 0) {
                // Until the end.
            }
        }
        System.exit(0);
    }

    private CuratorFramework client(int number) {
        return clients.get(number);
    }

    private String path(String name) {
        return base + "/" + name;
    }

    private interface Waiting {
        void run() throws Exception;
    }

    /** Does something that waits, and goes on when a node has so many children. */
    private void until(String path, int children, Waiting action) throws Exception {
        ground.beside(
                () -> {
                    action.run();
                    never.await();
                    return null;
                });
        long deadline = System.nanoTime() + SECONDS.toNanos(Ground.DEADLINE_S);
        while (count(path) != children) {
            Expect.that(System.nanoTime() < deadline, path + " has " + count(path));
            Thread.sleep(10);
        }
    }

    private int count(String path) throws Exception {
        var stat = client(0).checkExists().forPath(path);
        return stat == null ? 0 : stat.getNumChildren();
    }

    private void locks() throws Exception {
        for (int number = 0; number < 2; number++) {
            CuratorFramework client = client(number);
            until(
                    path("mutex"),
                    number + 1,
                    () -> new InterProcessMutex(client, path("mutex")).acquire());
        }
        for (int number = 0; number < 3; number++) {
            InterProcessReadWriteLock lock =
                    new InterProcessReadWriteLock(client(number), path("rw"));
            InterProcessMutex side = number == 1 ? lock.writeLock() : lock.readLock();
            until(path("rw"), number + 1, side::acquire);
        }
        for (int number = 0; number < 3; number++) {
            CuratorFramework client = client(number);
            until(
                    path("semaphore/leases"),
                    number + 1,
                    () -> new InterProcessSemaphoreV2(client, path("semaphore"), 2).acquire());
            if (number < 2) {
                until(path("semaphore/locks"), 0, () -> {});
            }
        }
    }

    private void elections() throws Exception {
        for (int number = 0; number < 2; number++) {
            LeaderLatch latch =
                    ground.own(new LeaderLatch(client(number), path("latch"), "c" + number));
            until(path("latch"), number + 1, latch::start);
        }
    }

    private static final class Text implements QueueSerializer<String> {
        @Override
        public byte[] serialize(String item) {
            return Ground.bytes(item);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return Ground.text(bytes);
        }
    }

    private final class Slow implements QueueConsumer<String> {
        @Override
        public void consumeMessage(String message) throws Exception {
            never.await();
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}
    }

    private QueueBuilder<String> queue(String name) {
        return QueueBuilder.builder(client(0), null, new Text(), path(name));
    }

    private void queues() throws Exception {
        DistributedQueue<String> plain = queue("queue").buildQueue();
        plain.start();
        DistributedPriorityQueue<String> priority = queue("priority").buildPriorityQueue(0);
        priority.start();
        DistributedDelayQueue<String> delay = queue("delay").buildDelayQueue();
        delay.start();
        DistributedIdQueue<String> id = queue("id").buildIdQueue();
        id.start();
        for (int number = 0; number < 2; number++) {
            plain.put("item");
            priority.put("item", number - 1);
            delay.put("item", System.currentTimeMillis() + 1_000_000);
            id.put("item", "name " + number);
        }
        new SimpleDistributedQueue(client(0), path("simple")).offer(Ground.bytes("item"));
        DistributedQueue<String> taken =
                QueueBuilder.builder(client(1), new Slow(), new Text(), path("taken-queue"))
                        .lockPath(path("taken-locks"))
                        .buildQueue();
        taken.start();
        taken.put("item");
        until(path("taken-locks"), 1, () -> {});
        for (String name : List.of("queue", "priority", "delay", "id")) {
            until(path(name), 2, () -> {});
        }
    }

    private void groups() throws Exception {
        new DistributedBarrier(client(0), path("barrier")).setBarrier();
        until(
                path("entering"),
                1,
                () -> new DistributedDoubleBarrier(client(0), path("entering"), 2).enter());
        List<Future<Void>> inside = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            CuratorFramework client = client(number);
            inside.add(
                    ground.beside(
                            () -> {
                                new DistributedDoubleBarrier(client, path("inside"), 2).enter();
                                return null;
                            }));
        }
        for (Future<Void> one : inside) {
            Ground.result(one);
        }
        for (int number = 0; number < 2; number++) {
            GroupMember member =
                    new GroupMember(
                            client(number), path("group"), "c" + number, Ground.bytes("payload"));
            ground.own(member).start();
            until(path("group"), number + 1, () -> {});
        }
    }
}
