import java.util.Objects;
import java.util.concurrent.Callable;

/** What a check demands; an {@link AssertionError} says what came instead. */
final class Expect {
    private static final long DEADLINE_MS = 30_000;
    private static final long PAUSE_MS = 20;

    private Expect() {}

    /** An action that may throw. */
    interface Action {
        void run() throws Exception;
    }

    static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    static void that(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    /** Demands that the action throws just this, and returns it. */
    static <X extends Exception> X raises(Class<X> kind, Action action) {
        try {
            action.run();
        } catch (Exception raised) {
            if (raised.getClass() == kind) {
                return kind.cast(raised);
            }
            throw new AssertionError("expected " + kind.getSimpleName() + ", got " + raised);
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", got no error");
    }

    /** Asks again until the answer is right: only for what nobody is told about. */
    static void eventually(Object expected, Callable<?> question) throws Exception {
        long limit = System.nanoTime() + DEADLINE_MS * 1_000_000;
        Object answer = question.call();
        while (!Objects.equals(expected, answer)) {
            if (System.nanoTime() - limit > 0) {
                throw new AssertionError("expected in the end " + expected + ", got " + answer);
            }
            Thread.sleep(PAUSE_MS);
            answer = question.call();
        }
    }
}
