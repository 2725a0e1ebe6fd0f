import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorEvent;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.api.transaction.OperationType;
import org.apache.curator.framework.api.transaction.TransactionOp;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.OpResult;

/** Transactions: all or nothing, and an outcome for each operation. */
final class TransactionChecks {
    /** One outcome in a line: the kind, its path, and the version or the name that came back. */
    private static String shown(Ground ground, CuratorTransactionResult result) {
        String line = result.getType() + " " + result.getForPath().substring(ground.base.length());
        if (result.getError() != 0) {
            return line + " " + KeeperException.Code.get(result.getError());
        }
        if (result.getResultPath() != null) {
            line += " " + result.getResultPath().substring(ground.base.length());
        }
        if (result.getResultStat() != null) {
            line += " v" + result.getResultStat().getVersion();
        }
        return line;
    }

    private static List<String> shown(Ground ground, Collection<CuratorTransactionResult> results) {
        List<String> lines = new ArrayList<>();
        results.forEach(result -> lines.add(shown(ground, result)));
        return lines;
    }

    private static List<KeeperException.Code> codes(List<OpResult> results) {
        List<KeeperException.Code> codes = new ArrayList<>();
        for (OpResult result : results) {
            int code = result instanceof OpResult.ErrorResult e ? e.getErr() : 0;
            codes.add(KeeperException.Code.get(code));
        }
        return codes;
    }

    private static List<CuratorOp> work(Ground ground, TransactionOp operation) throws Exception {
        return List.of(
                operation.create().forPath(ground.path("a"), Ground.bytes("1")),
                operation.check().withVersion(0).forPath(ground.path("a")),
                operation.setData().withVersion(0).forPath(ground.path("a"), Ground.bytes("2")),
                operation
                        .create()
                        .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                        .forPath(ground.path("n-")),
                operation.create().withMode(CreateMode.CONTAINER).forPath(ground.path("box")),
                operation
                        .create()
                        .withTtl(600_000)
                        .withMode(CreateMode.PERSISTENT_WITH_TTL)
                        .forPath(ground.path("ttl")),
                operation.delete().withVersion(1).forPath(ground.path("a")));
    }

    @Check
    void aTransactionTellsTheOutcomeOfEach(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        List<CuratorTransactionResult> results =
                client.transaction().forOperations(work(ground, client.transactionOp()));
        Expect.equal(
                List.of(
                        "CREATE /a /a",
                        "CHECK /a",
                        "SET_DATA /a v1",
                        "CREATE /n- /n-0000000001",
                        // Answered with a name and a Stat, which Curator lets go.
                        "CREATE /box",
                        "CREATE /ttl",
                        "DELETE /a"),
                shown(ground, results));
        List<String> children = new ArrayList<>(client.getChildren().forPath(ground.base));
        children.sort(null);
        Expect.equal(List.of("box", "n-0000000001", "ttl"), children);
    }

    @Check
    void aFailedTransactionNamesTheOneThatFailed(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        TransactionOp operation = client.transactionOp();
        KeeperException failure =
                Expect.raises(
                        KeeperException.BadVersionException.class,
                        () ->
                                client.transaction()
                                        .forOperations(
                                                operation.create().forPath(ground.path("a")),
                                                operation
                                                        .check()
                                                        .withVersion(3)
                                                        .forPath(ground.base),
                                                operation.delete().forPath(ground.path("no"))));
        Expect.equal(
                List.of(
                        KeeperException.Code.OK,
                        KeeperException.Code.BADVERSION,
                        KeeperException.Code.RUNTIMEINCONSISTENCY),
                codes(failure.getResults()));
        Expect.equal(List.of(), client.getChildren().forPath(ground.base));
    }

    @Check
    void aTransactionRunsInTheBackground(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Inbox<CuratorEvent> inbox = new Inbox<>();
        TransactionOp operation = client.transactionOp();
        client.transaction()
                .inBackground((c, event) -> inbox.put(event))
                .forOperations(work(ground, operation));
        CuratorEvent done = inbox.next();
        Expect.equal(0, done.getResultCode());
        Expect.equal(7, done.getOpResults().size());
        Expect.equal("CREATE /n- /n-0000000001", shown(ground, done.getOpResults().get(3)));
        client.transaction()
                .inBackground((c, event) -> inbox.put(event))
                .forOperations(
                        operation.delete().forPath(ground.path("box")),
                        operation.delete().forPath(ground.path("missing")));
        Expect.equal(KeeperException.Code.NONODE.intValue(), inbox.next().getResultCode());
        Expect.that(
                client.checkExists().forPath(ground.path("box")) != null,
                "half of it was done");
    }

    @Check
    @SuppressWarnings("deprecation")
    void theOldTransactionsWorkToo(Ground ground) throws Exception {
        CuratorFramework client = ground.curator();
        Collection<CuratorTransactionResult> results =
                client.inTransaction()
                        .create()
                        .withMode(CreateMode.PERSISTENT)
                        .forPath(ground.path("a"), Ground.bytes("1"))
                        .and()
                        .setData()
                        .forPath(ground.path("a"), Ground.bytes("2"))
                        .and()
                        .check()
                        .forPath(ground.path("a"))
                        .and()
                        .delete()
                        .forPath(ground.path("a"))
                        .and()
                        .commit();
        Expect.equal(
                List.of("CREATE /a /a", "SET_DATA /a v1", "CHECK /a", "DELETE /a"),
                shown(ground, results));
        KeeperException failure =
                Expect.raises(
                        KeeperException.NoNodeException.class,
                        () ->
                                client.inTransaction()
                                        .create()
                                        .forPath(ground.path("b"))
                                        .and()
                                        .delete()
                                        .forPath(ground.path("missing"))
                                        .and()
                                        .commit());
        Expect.equal(
                List.of(KeeperException.Code.OK, KeeperException.Code.NONODE),
                codes(failure.getResults()));
        Expect.equal(null, client.checkExists().forPath(ground.path("b")));
    }

    @Check
    void aTransactionStaysInItsNamespace(Ground ground) throws Exception {
        CuratorFramework client = ground.curator(o -> o.namespace(ground.base.substring(1)));
        List<CuratorTransactionResult> results =
                client.transaction()
                        .forOperations(
                                client.transactionOp().create().forPath("/a"),
                                client.transactionOp().create().forPath("/a/b"));
        Expect.equal(OperationType.CREATE, results.get(1).getType());
        Expect.equal("/a/b", results.get(1).getForPath());
        Expect.equal("/a/b", results.get(1).getResultPath());
        Expect.that(
                ground.curator().checkExists().forPath(ground.path("a/b")) != null,
                "it was done elsewhere");
    }
}
