"""The clients and the recipes, kazoo's and ours in turn on the same server."""

from bench import clients, recipes
from bench.clients import Job, Runs
from bench.matrix import warm
from bench.results import ops_per_s
from bench.servers import BenchError, Server, running
from bench.stage import Stage


def measure_clients(stage: Stage) -> None:
    """Run every task with every client on both servers."""
    both = stage.new_servers("clients")
    with running(*both.values()):
        # Over many connections: no single client could do it, and the faster one would pay for it.
        warm(stage, both)
        for task in clients.tasks(list(both)):
            _compare(stage, task, both[task.server], stage.results.clients)


def measure_recipes(stage: Stage) -> None:
    """Run every recipe on both servers, and count the messages of a lock."""
    both = stage.new_servers("recipes")
    with running(*both.values()):
        warm(stage, both)
        for name, server in both.items():
            for task in recipes.tasks([name]):
                seconds = 0.5 if stage.chosen.quick else 2.0
                clients.run(server, clients.PADDOCK, task, seconds, 0)
        for task in recipes.tasks(list(both)):
            _compare(stage, task, both[task.server], stage.results.recipes)
        for line in recipes.lines(list(both)):
            _grow(stage, line, both[line.server])


def _compare(stage: Stage, job: Job, server: Server, results: Runs) -> None:
    """Run the job with every client, in turn; the first one differs in each round."""
    runs = results.setdefault(job, {name: [] for name in job.clients})
    chosen = stage.chosen
    for number in range(chosen.rounds):
        first = number % len(job.clients)
        for name in job.clients[first:] + job.clients[:first]:
            try:
                run = clients.run(server, name, job, chosen.seconds, chosen.warmup_s)
            except BenchError as error:
                stage.failed(server, error)
            else:
                runs[name].append(run)
    figures = "  ".join(
        f"{name} {clients.median(results, job, name, ops_per_s) or 0:,.0f}" for name in job.clients
    )
    print(f"{job.row:42} on {server.name:17} {figures} ops/s", flush=True)


def _grow(stage: Stage, line: recipes.Line, server: Server) -> None:
    try:
        growth = recipes.grow(server, line)
    except BenchError as error:
        stage.failed(server, error)
    else:
        stage.results.growths[line] = growth
        what = f"{line.client}, {line.waiters} waiters, on {server.name}"
        print(f"{what:42} {growth.messages:.1f} messages a hand-over", flush=True)
