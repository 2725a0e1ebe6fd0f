import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import org.apache.curator.RetryPolicy;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/** Numbers and values that several clients change: conditional writes. */
final class CounterChecks {
    private static final int CLIENTS = 4;
    private static final int ROUNDS = 5;

    private static SharedCount count(Ground ground, Inbox<Integer> inbox) throws Exception {
        SharedCount count = ground.own(new SharedCount(ground.curator(), ground.path("n"), 7));
        count.addListener(
                new SharedCountListener() {
                    @Override
                    public void countHasChanged(SharedCountReader reader, int value) {
                        inbox.put(value);
                    }

                    @Override
                    public void stateChanged(CuratorFramework client, ConnectionState state) {}
                });
        count.start();
        return count;
    }

    @Check
    void sharedCountIsSeenByAll(Ground ground) throws Exception {
        Inbox<Integer> inbox = new Inbox<>();
        SharedCount one = count(ground, new Inbox<>());
        SharedCount two = count(ground, inbox);
        Expect.equal(7, two.getCount());
        VersionedValue<Integer> seen = two.getVersionedValue();
        one.setCount(8);
        inbox.await(8);
        Expect.equal(8, two.getCount());
        Expect.that(!two.trySetCount(seen, 9), "an old version was written over");
        Expect.that(two.trySetCount(two.getVersionedValue(), 10), "the last version was refused");
        Expect.eventually(10, one::getCount);
    }

    @Check
    void sharedValueRefusesAnOldVersion(Ground ground) throws Exception {
        SharedValue one =
                ground.own(
                        new SharedValue(ground.curator(), ground.path("v"), Ground.bytes("seed")));
        SharedValue two =
                ground.own(
                        new SharedValue(ground.curator(), ground.path("v"), Ground.bytes("other")));
        one.start();
        two.start();
        Expect.equal("seed", Ground.text(two.getValue()));
        VersionedValue<byte[]> seen = two.getVersionedValue();
        Expect.that(one.trySetValue(one.getVersionedValue(), Ground.bytes("1")), "refused");
        Expect.that(!two.trySetValue(seen, Ground.bytes("2")), "an old version was written over");
        Expect.eventually("1", () -> Ground.text(two.getValue()));
    }

    private static void addUp(Ground ground, PromotedToLock promotion) throws Exception {
        RetryPolicy policy = new RetryNTimes(1_000, 1);
        List<Future<Void>> adding = new ArrayList<>();
        for (int number = 0; number < CLIENTS; number++) {
            CuratorFramework client = ground.curator();
            DistributedAtomicLong sum =
                    promotion == null
                            ? new DistributedAtomicLong(client, ground.path("sum"), policy)
                            : new DistributedAtomicLong(
                                    client, ground.path("sum"), new RetryNTimes(0, 0), promotion);
            adding.add(
                    ground.beside(
                            () -> {
                                for (int round = 0; round < ROUNDS; round++) {
                                    Expect.that(sum.add(3L).succeeded(), "it was not added");
                                }
                                return null;
                            }));
        }
        for (Future<Void> one : adding) {
            Ground.result(one);
        }
        DistributedAtomicLong sum =
                new DistributedAtomicLong(ground.curator(), ground.path("sum"), policy);
        Expect.equal(3L * CLIENTS * ROUNDS, sum.get().postValue());
    }

    @Check
    void atomicLongAddsUp(Ground ground) throws Exception {
        addUp(ground, null);
    }

    @Check
    void atomicLongAddsUpUnderALock(Ground ground) throws Exception {
        addUp(
                ground,
                PromotedToLock.builder()
                        .lockPath(ground.path("lock"))
                        .retryPolicy(new RetryNTimes(1_000, 1))
                        .timeout(Ground.DEADLINE_S, SECONDS)
                        .build());
    }

    @Check
    void atomicLongComparesBeforeItSets(Ground ground) throws Exception {
        DistributedAtomicLong number =
                new DistributedAtomicLong(
                        ground.curator(), ground.path("n"), new RetryNTimes(10, 10));
        Expect.that(number.initialize(1L), "it was there already");
        Expect.that(!number.initialize(2L), "it was initialized twice");
        Expect.that(!number.compareAndSet(5L, 6L).succeeded(), "5 was replaced, and it was 1");
        AtomicValue<Long> swapped = number.compareAndSet(1L, 6L);
        Expect.that(swapped.succeeded(), "1 was not replaced");
        Expect.equal(1L, swapped.preValue());
        Expect.equal(5L, number.decrement().postValue());
    }
}
