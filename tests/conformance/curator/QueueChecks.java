import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Queues: sequential nodes, each taken by one consumer. */
final class QueueChecks {
    private static final QueueSerializer<String> TEXT =
            new QueueSerializer<>() {
                @Override
                public byte[] serialize(String item) {
                    return Ground.bytes(item);
                }

                @Override
                public String deserialize(byte[] bytes) {
                    return Ground.text(bytes);
                }
            };

    private static QueueConsumer<String> into(Inbox<String> inbox) {
        return new QueueConsumer<>() {
            @Override
            public void consumeMessage(String message) {
                inbox.put(message);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
    }

    private static QueueBuilder<String> queue(Ground ground, QueueConsumer<String> consumer)
            throws Exception {
        return QueueBuilder.builder(ground.curator(), consumer, TEXT, ground.path("queue"));
    }

    @Check
    void queueHandsOutInOrder(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        DistributedQueue<String> producer = ground.own(queue(ground, null).buildQueue());
        producer.start();
        for (int number = 0; number < 10; number++) {
            producer.put("item " + number);
        }
        Expect.that(producer.flushPuts(Ground.DEADLINE_S, SECONDS), "not all were put");
        DistributedQueue<String> consumer = ground.own(queue(ground, into(inbox)).buildQueue());
        consumer.start();
        for (int number = 0; number < 10; number++) {
            inbox.expect("item " + number);
        }
    }

    @Check
    void queueHandsOutEachItemOnce(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        List<String> put = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            DistributedQueue<String> consumer =
                    ground.own(
                            queue(ground, into(inbox)).lockPath(ground.path("lock")).buildQueue());
            consumer.start();
        }
        DistributedQueue<String> producer = ground.own(queue(ground, null).buildQueue());
        producer.start();
        for (int number = 0; number < 10; number++) {
            put.add("item " + number);
            producer.put("item " + number);
        }
        List<String> got = new ArrayList<>();
        for (int number = 0; number < 10; number++) {
            got.add(inbox.next());
        }
        got.sort(null);
        Expect.equal(put, got);
        CuratorFramework client = ground.curator();
        Expect.eventually(List.of(), () -> client.getChildren().forPath(ground.path("queue")));
        Expect.equal(List.of(), inbox.drain());
    }

    @Check
    void priorityQueueHandsOutTheMostUrgentFirst(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        DistributedPriorityQueue<String> producer =
                ground.own(queue(ground, null).buildPriorityQueue(1));
        producer.start();
        producer.put("low", 30);
        producer.put("high", -5);
        producer.put("middle", 2);
        Expect.that(producer.flushPuts(Ground.DEADLINE_S, SECONDS), "not all were put");
        DistributedPriorityQueue<String> consumer =
                ground.own(queue(ground, into(inbox)).buildPriorityQueue(1));
        consumer.start();
        inbox.expect("high", "middle", "low");
    }

    @Check
    void delayQueueHandsOutWhenItIsTime(Ground ground) throws Exception {
        Inbox<String> inbox = new Inbox<>();
        DistributedDelayQueue<String> queue =
                ground.own(queue(ground, into(inbox)).buildDelayQueue());
        queue.start();
        long now = System.currentTimeMillis();
        queue.put("later", now + 600);
        queue.put("sooner", now + 200);
        inbox.expect("sooner", "later");
        Expect.that(System.currentTimeMillis() >= now + 600, "it came before its time");
    }

    @Check
    void simpleQueueWaitsForAnItem(Ground ground) throws Exception {
        String path = ground.path("queue");
        SimpleDistributedQueue one = new SimpleDistributedQueue(ground.curator(), path);
        SimpleDistributedQueue two = new SimpleDistributedQueue(ground.curator(), path);
        Expect.raises(NoSuchElementException.class, one::element);
        Expect.equal(null, one.poll(100, MILLISECONDS));
        Future<byte[]> waiting = ground.beside(one::take);
        Expect.that(two.offer(Ground.bytes("1")), "it was not taken in");
        Expect.equal("1", Ground.text(Ground.result(waiting)));
        two.offer(Ground.bytes("2"));
        two.offer(Ground.bytes("3"));
        Expect.equal("2", Ground.text(one.peek()));
        Expect.equal("2", Ground.text(one.remove()));
        Expect.equal("3", Ground.text(two.poll()));
        Expect.equal(null, one.poll());
    }
}
