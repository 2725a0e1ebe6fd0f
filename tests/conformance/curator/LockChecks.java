import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;

/** Locks: sequential ephemeral nodes, and a watch on whoever is in front. */
final class LockChecks {
    private static final int CLIENTS = 4;
    private static final int ROUNDS = 5;
    /** Long enough for a request or two, when the outcome is that it was in vain. */
    private static final long BRIEFLY_MS = 300;

    private static boolean briefly(InterProcessLock lock) throws Exception {
        return lock.acquire(BRIEFLY_MS, MILLISECONDS);
    }

    private static void surely(InterProcessLock lock) throws Exception {
        Expect.that(lock.acquire(Ground.DEADLINE_S, SECONDS), "the lock was not to be had");
    }

    @Check
    void mutexIsHeldByOneAtATime(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        // Made here, because the container that a mutex makes would be reaped in the end.
        client.create().forPath(ground.path("lock"));
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        List<Future<Void>> workers = new ArrayList<>();
        for (int number = 0; number < CLIENTS; number++) {
            InterProcessMutex mutex = new InterProcessMutex(ground.curator(), ground.path("lock"));
            Callable<Void> work =
                    () -> {
                        for (int round = 0; round < ROUNDS; round++) {
                            surely(mutex);
                            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                            Thread.yield();
                            inside.decrementAndGet();
                            mutex.release();
                        }
                        return null;
                    };
            workers.add(ground.beside(work));
        }
        for (Future<Void> worker : workers) {
            Ground.result(worker);
        }
        Expect.equal(1, most.get());
        // The others may be clients of other servers, which are ahead.
        Ground.settle(client);
        Expect.equal(List.of(), client.getChildren().forPath(ground.path("lock")));
    }

    @Check
    void mutexIsReentrant(Ground ground) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(ground.curator(), ground.path("lock"));
        InterProcessMutex other = new InterProcessMutex(ground.curator(), ground.path("lock"));
        surely(mutex);
        surely(mutex);
        Expect.equal(1, mutex.getParticipantNodes().size());
        mutex.release();
        Expect.that(!briefly(other), "it was free after the first of two releases");
        mutex.release();
        surely(other);
        Expect.raises(IllegalMonitorStateException.class, mutex::release);
    }

    @Check
    void mutexIsRevoked(Ground ground) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(ground.curator(), ground.path("lock"));
        CompletableFuture<InterProcessMutex> asked = new CompletableFuture<>();
        mutex.makeRevocable(asked::complete);
        surely(mutex);
        CuratorFramework other = ground.curator();
        String holder = mutex.getParticipantNodes().iterator().next();
        Revoker.attemptRevoke(other, holder);
        Expect.equal(mutex, Ground.result(asked));
        mutex.release();
        surely(new InterProcessMutex(other, ground.path("lock")));
    }

    @Check
    void mutexOfAnExpiredSessionPassesOn(Ground ground) throws Exception {
        CuratorFramework holder = ground.curator();
        surely(new InterProcessMutex(holder, ground.path("lock")));
        InterProcessMutex next = new InterProcessMutex(ground.curator(), ground.path("lock"));
        Expect.that(!briefly(next), "it was free while it was held");
        Future<Void> waiting =
                ground.beside(
                        () -> {
                            surely(next);
                            return null;
                        });
        ground.expire(holder);
        Ground.result(waiting);
    }

    @Check
    void semaphoreMutexIsNotReentrant(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        InterProcessSemaphoreMutex mutex =
                new InterProcessSemaphoreMutex(client, ground.path("lock"));
        surely(mutex);
        Expect.that(!briefly(mutex), "its holder had it a second time");
        mutex.release();
        surely(new InterProcessSemaphoreMutex(ground.curator(), ground.path("lock")));
    }

    @Check
    void readersShareAndWritersDoNot(Ground ground) throws Exception {
        String path = ground.path("lock");
        InterProcessReadWriteLock one = new InterProcessReadWriteLock(ground.curator(), path);
        InterProcessReadWriteLock two = new InterProcessReadWriteLock(ground.curator(), path);
        surely(one.readLock());
        surely(two.readLock());
        Expect.that(!briefly(two.writeLock()), "a writer came in beside a reader");
        two.readLock().release();
        one.readLock().release();
        surely(two.writeLock());
        Expect.that(!briefly(one.readLock()), "a reader came in beside a writer");
        Expect.that(!briefly(one.writeLock()), "a writer came in beside a writer");
    }

    @Check
    void aWriterMayBecomeAReader(Ground ground) throws Exception {
        String path = ground.path("lock");
        InterProcessReadWriteLock one = new InterProcessReadWriteLock(ground.curator(), path);
        InterProcessReadWriteLock two = new InterProcessReadWriteLock(ground.curator(), path);
        surely(one.writeLock());
        surely(one.readLock());
        one.writeLock().release();
        surely(two.readLock());
    }

    @Check
    void semaphoreGivesOutItsLeasesOnly(Ground ground) throws Exception {
        String path = ground.path("leases");
        InterProcessSemaphoreV2 one = new InterProcessSemaphoreV2(ground.curator(), path, 3);
        InterProcessSemaphoreV2 two = new InterProcessSemaphoreV2(ground.curator(), path, 3);
        Collection<Lease> leases = one.acquire(2, Ground.DEADLINE_S, SECONDS);
        Expect.equal(2, leases.size());
        Lease third = two.acquire(Ground.DEADLINE_S, SECONDS);
        Expect.that(third != null, "the third lease was not to be had");
        Expect.equal(null, two.acquire(BRIEFLY_MS, MILLISECONDS));
        one.returnAll(leases);
        Expect.equal(2, two.acquire(2, Ground.DEADLINE_S, SECONDS).size());
        Expect.equal(3, two.getParticipantNodes().size());
    }

    @Check
    void multiLockTakesAllOrNone(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        List<String> paths = List.of(ground.path("a"), ground.path("b"));
        InterProcessMultiLock both = new InterProcessMultiLock(client, paths);
        InterProcessMutex second = new InterProcessMutex(ground.curator(), ground.path("b"));
        surely(second);
        Expect.that(!briefly(both), "it was had while one of its locks was held");
        // What it had of them it gave back.
        InterProcessMutex first = new InterProcessMutex(ground.curator(), ground.path("a"));
        surely(first);
        first.release();
        second.release();
        surely(both);
        Expect.that(both.isAcquiredInThisProcess(), "it does not know that it is held");
        Expect.that(!briefly(second), "one of its locks was free while it was held");
        both.release();
        surely(second);
    }
}
