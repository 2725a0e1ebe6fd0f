import static org.apache.zookeeper.CreateMode.PERSISTENT;
import static org.apache.zookeeper.ZooDefs.Ids.OPEN_ACL_UNSAFE;

import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.zookeeper.ZooKeeper;

/**
 * Runs every check against the servers at {@code HOST:PORT,...} and prints one line for each:
 * {@code ok NAME} or {@code failed NAME: why}.
 *
 * <p>The checks are the methods marked with {@link Check}, each on a node and with clients of its
 * own, so most of them run side by side. A check that has not come to an end by its deadline has
 * failed; what it was waiting for is told.
 */
public final class Checks {
    private static final long DEADLINE_S = 60;
    private static final int AT_ONCE = 12;

    private static final List<Object> GROUPS =
            List.of(
                    new CacheChecks(),
                    new LockChecks(),
                    new ElectionChecks(),
                    new BarrierChecks(),
                    new CounterChecks(),
                    new QueueChecks(),
                    new NodeChecks(),
                    new FrameworkChecks(),
                    new TransactionChecks(),
                    new WatchChecks(),
                    new SessionChecks(),
                    new ExactChecks(),
                    new ClientChecks(),
                    new ClientWatchChecks());

    private static final Set<Class<?>> RECIPES =
            Set.of(
                    CacheChecks.class,
                    LockChecks.class,
                    ElectionChecks.class,
                    BarrierChecks.class,
                    QueueChecks.class);

    private final String address;
    private final PrintStream report;

    private Checks(String address, PrintStream report) {
        this.address = address;
        this.report = report;
    }

    public static void main(String[] arguments) throws Exception {
        new Checks(arguments[0], System.out).run();
        // Threads of a client that a failed check left behind do not keep the program alive.
        System.exit(0);
    }

    private void run() throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<?>> running = new ArrayList<>();
        List<Runnable> alone = new ArrayList<>();
        try (Ground ground = new Ground(address, "/")) {
            ZooKeeper client = ground.zookeeper();
            for (Object group : GROUPS) {
                for (Method method : checksOf(group)) {
                    client.create(base(group, method), null, OPEN_ACL_UNSAFE, PERSISTENT);
                }
            }
        }
        for (Object group : GROUPS) {
            for (Method method : checksOf(group)) {
                if (method.getAnnotation(Check.class).alone()) {
                    alone.add(() -> report(group, method));
                } else {
                    running.add(workers.submit(() -> report(group, method)));
                }
            }
        }
        for (Future<?> check : running) {
            check.get();
        }
        alone.forEach(Runnable::run);
        workers.shutdown();
    }

    private static List<Method> checksOf(Object group) {
        List<Method> methods = new ArrayList<>();
        for (Method method : group.getClass().getDeclaredMethods()) {
            if (method.isAnnotationPresent(Check.class)) {
                methods.add(method);
            }
        }
        methods.sort(Comparator.comparing(Method::getName));
        return methods;
    }

    /**
     * Returns the servers of a check: all of them for recipes, and where they are restarted. The
     * others have one each, since a client reads there what another has just written.
     */
    private String servers(Object group, Method method) {
        if (RECIPES.contains(group.getClass()) || method.getAnnotation(Check.class).alone()) {
            return address;
        }
        String[] all = address.split(",");
        return all[Math.floorMod(name(group, method).hashCode(), all.length)];
    }

    private static String name(Object group, Method method) {
        return group.getClass().getSimpleName() + "." + method.getName();
    }

    private static String base(Object group, Method method) {
        return "/" + name(group, method);
    }

    private void report(Object group, Method method) {
        String name = name(group, method);
        FutureTask<Void> task =
                new FutureTask<>(
                        () -> {
                            // Clients that a check leaves open end with it, however it ends.
                            String servers = servers(group, method);
                            try (Ground ground = new Ground(servers, base(group, method))) {
                                method.invoke(group, ground);
                            }
                            return null;
                        });
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
        String why = null;
        try {
            task.get(DEADLINE_S, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            why = "not over after " + DEADLINE_S + " s " + where(thread.getStackTrace());
            thread.interrupt();
        } catch (Exception failure) {
            why = reason(failure);
        }
        synchronized (report) {
            report.println(why == null ? "ok " + name : "failed " + name + ": " + why);
            report.flush();
        }
    }

    /** Says in one line what was thrown, and where in the check. */
    private static String reason(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null
                && (cause instanceof java.util.concurrent.ExecutionException
                        || cause instanceof InvocationTargetException)) {
            cause = cause.getCause();
        }
        String text = cause instanceof AssertionError ? cause.getMessage() : cause.toString();
        return (text + " " + where(cause.getStackTrace())).replace('\n', ' ');
    }

    private static String where(StackTraceElement[] trace) {
        for (StackTraceElement frame : trace) {
            if (frame.getClassName().endsWith("Checks")
                    || frame.getClassName().contains("Checks$")) {
                return "(" + frame.getFileName() + ":" + frame.getLineNumber() + ")";
            }
        }
        return "";
    }
}
