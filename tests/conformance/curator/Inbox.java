import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What a check has been told of, in its order: listeners and watchers put, the check takes. */
final class Inbox<T> {
    private static final long DEADLINE_S = 30;

    private final BlockingQueue<T> told = new LinkedBlockingQueue<>();

    void put(T message) {
        told.add(message);
    }

    /** Waits for the next one. */
    T next() throws InterruptedException {
        T message = told.poll(DEADLINE_S, TimeUnit.SECONDS);
        if (message == null) {
            throw new AssertionError("nothing more came");
        }
        return message;
    }

    /** Waits for this one and lets go of those before it. */
    void await(T message) throws InterruptedException {
        List<T> others = new ArrayList<>();
        while (true) {
            T next = told.poll(DEADLINE_S, TimeUnit.SECONDS);
            if (next == null) {
                throw new AssertionError("expected " + message + ", got only " + others);
            }
            if (next.equals(message)) {
                return;
            }
            others.add(next);
        }
    }

    /** Demands these, one after the other, with nothing between them. */
    @SafeVarargs
    final void expect(T... messages) throws InterruptedException {
        for (T message : messages) {
            Expect.equal(message, next());
        }
    }

    /** Takes what has come by now. */
    List<T> drain() {
        List<T> messages = new ArrayList<>();
        told.drainTo(messages);
        return messages;
    }
}
