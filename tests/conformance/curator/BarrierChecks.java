import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Barriers: nobody passes before it is time. */
final class BarrierChecks {
    private static final int MEMBERS = 4;

    @Check
    void barrierHoldsUntilItIsRemoved(Ground ground) throws Exception {
        String path = ground.path("barrier");
        DistributedBarrier keeper = new DistributedBarrier(ground.curator(), path);
        CuratorFramework other = ground.curator();
        DistributedBarrier waiter = new DistributedBarrier(other, path);
        keeper.setBarrier();
        // It may be a client of another server, which may be behind.
        Ground.settle(other);
        Expect.that(!waiter.waitOnBarrier(300, MILLISECONDS), "it was passed while it stood");
        Future<Boolean> waiting =
                ground.beside(() -> waiter.waitOnBarrier(Ground.DEADLINE_S, SECONDS));
        keeper.removeBarrier();
        Expect.that(Ground.result(waiting), "it held though it was removed");
        Expect.that(waiter.waitOnBarrier(Ground.DEADLINE_S, SECONDS), "it held though absent");
    }

    @Check
    void doubleBarrierEntersAndLeavesTogether(Ground ground) throws Exception {
        AtomicInteger arrived = new AtomicInteger();
        AtomicInteger leaving = new AtomicInteger();
        List<Future<Integer>> members = new ArrayList<>();
        for (int number = 0; number < MEMBERS; number++) {
            DistributedDoubleBarrier barrier =
                    new DistributedDoubleBarrier(
                            ground.curator(), ground.path("barrier"), MEMBERS);
            members.add(
                    ground.beside(
                            () -> {
                                arrived.incrementAndGet();
                                Expect.that(barrier.enter(Ground.DEADLINE_S, SECONDS), "not in");
                                Expect.equal(MEMBERS, arrived.get());
                                leaving.incrementAndGet();
                                Expect.that(barrier.leave(Ground.DEADLINE_S, SECONDS), "not out");
                                return leaving.get();
                            }));
        }
        for (Future<Integer> member : members) {
            Expect.equal(MEMBERS, Ground.result(member));
        }
    }

    @Check
    void doubleBarrierIsNotEnteredByTooFew(Ground ground) throws Exception {
        DistributedDoubleBarrier barrier =
                new DistributedDoubleBarrier(ground.curator(), ground.path("barrier"), 2);
        Expect.that(!barrier.enter(300, MILLISECONDS), "one of two went in");
    }
}
