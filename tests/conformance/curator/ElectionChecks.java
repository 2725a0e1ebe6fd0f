import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Elections: one leader at a time, and somebody follows when it goes. */
final class ElectionChecks {
    private static LeaderLatch latch(
            Ground ground, CuratorFramework client, String id, Inbox<String> inbox)
            throws Exception {
        LeaderLatch latch = ground.own(new LeaderLatch(client, ground.path("latch"), id));
        latch.addListener(
                new LeaderLatchListener() {
                    @Override
                    public void isLeader() {
                        inbox.put(id + " leads");
                    }

                    @Override
                    public void notLeader() {
                        inbox.put(id + " leads no more");
                    }
                });
        latch.start();
        return latch;
    }

    /** Which of two clients hears first is open. */
    private static void expectBoth(Inbox<String> inbox, String one, String other)
            throws InterruptedException {
        Expect.equal(Set.of(one, other), Set.of(inbox.next(), inbox.next()));
    }

    @Check
    void latchPassesLeadershipOn(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        LeaderLatch first = latch(ground, ground.curator(), "first", inbox);
        inbox.expect("first leads");
        LeaderLatch second = latch(ground, ground.curator(), "second", inbox);
        Expect.eventually(2, () -> second.getParticipants().size());
        Expect.equal("first", second.getLeader().getId());
        Expect.that(!second.hasLeadership(), "there are two leaders");
        first.close(LeaderLatch.CloseMode.NOTIFY_LEADER);
        expectBoth(inbox, "first leads no more", "second leads");
        Expect.that(second.await(Ground.DEADLINE_S, SECONDS), "nobody followed");
        Expect.equal("second", second.getLeader().getId());
    }

    @Check
    void latchLosesLeadershipWithItsSession(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        CuratorFramework client = ground.curator();
        latch(ground, client, "first", inbox);
        inbox.expect("first leads");
        LeaderLatch second = latch(ground, ground.curator(), "second", inbox);
        Expect.eventually(2, () -> second.getParticipants().size());
        ground.expire(client);
        expectBoth(inbox, "first leads no more", "second leads");
        // The first one stands again, with its new session.
        Expect.eventually(2, () -> second.getParticipants().size());
        Expect.equal("second", second.getLeader().getId());
    }

    @Check
    void selectorGivesEveryoneATurn(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        CountDownLatch all = new CountDownLatch(3);
        for (String id : List.of("a", "b", "c")) {
            LeaderSelector selector =
                    ground.own(
                            new LeaderSelector(
                                    ground.curator(),
                                    ground.path("selector"),
                                    new LeaderSelectorListenerAdapter() {
                                        @Override
                                        public void takeLeadership(CuratorFramework client)
                                                throws Exception {
                                            inbox.put(id + " in");
                                            all.await(Ground.DEADLINE_S, SECONDS);
                                            inbox.put(id + " out");
                                        }
                                    }));
            selector.setId(id);
            selector.start();
            all.countDown();
        }
        Set<String> led = new TreeSet<>();
        for (int turn = 0; turn < 3; turn++) {
            String id = inbox.next().substring(0, 1);
            led.add(id);
            Expect.equal(id + " out", inbox.next());
        }
        Expect.equal(Set.of("a", "b", "c"), led);
    }

    @Check
    void selectorNamesItsParticipants(Ground ground) throws Exception {
        CountDownLatch leads = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        LeaderSelector selector =
                ground.own(
                        new LeaderSelector(
                                ground.curator(),
                                ground.path("selector"),
                                new LeaderSelectorListenerAdapter() {
                                    @Override
                                    public void takeLeadership(CuratorFramework client)
                                            throws Exception {
                                        leads.countDown();
                                        over.await(Ground.DEADLINE_S, SECONDS);
                                    }
                                }));
        selector.setId("me");
        selector.start();
        Expect.that(leads.await(Ground.DEADLINE_S, SECONDS), "it never led");
        Expect.equal(new Participant("me", true), selector.getLeader());
        Expect.equal(1, selector.getParticipants().size());
        selector.interruptLeadership();
        Expect.eventually(false, selector::hasLeadership);
    }
}
