"""The guard of the hot paths: what it reads, what it concludes, and that the paths can be taken."""

import asyncio
from pathlib import Path

import pytest

from bench import callgrind, guard
from bench.baselines import Baselines, Measured, Verdict, compare, other_versions, table
from bench.guard_paths import CROWD, PATHS, WARM_UP_ROUNDS, take
from bench.guard_stage import Heart, StillLoop, request
from bench.servers import BenchError
from paddock.protocol import opcodes
from paddock.protocol.requests import WatchedRequest

# What callgrind writes at a mark, but for the costs of each function.
PART = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 4711
part: 2
desc: Trigger: --dump-before=getsid

positions: line
events: Ir
summary: 1234567

fn=(12) PyObject_Call
0 99

totals: 1234567
"""
COMBINATION = {"machine": "Linux x86_64", "python": "CPython 3.11", "build": "pure", "compiler": ""}
VERSIONS = {"python": "3.11.7", "librt": "0.16.0"}
REPORT = (
    '{"operations": {"get": 1000, "set": 500}, '
    '"combination": {"build": "pure"}, "versions": {"python": "3.11.7"}}\n'
)


def measured(build: str = "pure", **instructions: float) -> Measured:
    return Measured({**COMBINATION, "build": build}, VERSIONS, instructions)


def verdicts(before: Measured | None, now: Measured) -> list[Verdict]:
    return [one.verdict for one in compare(before, now, 0.02)]


def test_the_count_of_a_part_is_read() -> None:
    assert callgrind.counts([PART, PART.replace("1234567", "89")]) == [1234567, 89]


def test_a_part_that_no_mark_began_is_refused() -> None:
    with pytest.raises(BenchError, match="something else"):
        callgrind.counts([PART.replace("--dump-before=getsid", "Program termination")])


def test_a_part_without_a_total_is_refused() -> None:
    with pytest.raises(BenchError, match="something else"):
        callgrind.counts([PART.replace("totals:", "costs:")])


def test_what_lies_between_two_marks_of_a_path_counts_for_it() -> None:
    found = guard.read(REPORT, [987_654, 20_000, 555, 30_000])
    assert found.instructions == {"get": 20.0, "set": 60.0}
    assert found.combination == {"build": "pure"}


def test_a_mark_that_was_not_seen_is_told() -> None:
    with pytest.raises(BenchError, match="3 marks of 4"):
        guard.read(REPORT, [987_654, 20_000, 555])


def test_what_grew_by_more_than_the_tolerance_is_worse() -> None:
    before, now = measured(get=1000, set=1000), measured(get=1020, set=1021)
    assert verdicts(before, now) == [Verdict.SAME, Verdict.WORSE]


def test_what_shrank_by_more_than_the_tolerance_is_better() -> None:
    before, now = measured(get=1000, set=1000), measured(get=980, set=979)
    assert verdicts(before, now) == [Verdict.SAME, Verdict.BETTER]


def test_a_path_without_a_baseline_is_new() -> None:
    assert verdicts(None, measured(get=1000)) == [Verdict.NEW]
    assert verdicts(measured(get=1000), measured(get=1000, set=5)) == [Verdict.SAME, Verdict.NEW]


def test_the_table_has_a_line_for_each_path() -> None:
    findings = compare(measured(get=1000), measured(get=1500, create=12345.6), 0.02)
    assert table(findings).splitlines() == [
        "path    baseline     now   change",
        "get        1,000   1,500  +50.00%  MORE",
        "create         –  12,346        –  no baseline",
    ]


def test_a_baseline_is_found_by_its_combination() -> None:
    baselines = Baselines([measured("pure", get=2), measured("compiled", get=1)])
    found = baselines.of(measured("compiled", get=3))
    assert found is not None
    assert found.instructions == {"get": 1}
    assert baselines.of(measured("of another kind", get=3)) is None


def test_recording_replaces_one_baseline_and_keeps_the_others(tmp_path: Path) -> None:
    file = tmp_path / "baselines.json"
    baselines = Baselines.load(file)
    for one in (measured("pure", get=2), measured("compiled", get=1), measured("pure", get=1.56)):
        baselines.record(one)
    baselines.save(file)
    loaded = Baselines.load(file)
    pure, compiled = loaded.of(measured("pure")), loaded.of(measured("compiled"))
    assert pure == measured("pure", get=1.6)
    assert compiled == measured("compiled", get=1)


def test_a_file_of_baselines_that_is_damaged_is_named(tmp_path: Path) -> None:
    file = tmp_path / "baselines.json"
    file.write_text('{"baselines": [{"combination": {}}]}')
    with pytest.raises(BenchError, match=r"baselines\.json cannot be read"):
        Baselines.load(file)


def test_other_versions_are_named() -> None:
    now = Measured(COMBINATION, {"python": "3.11.9", "librt": "0.16.0", "libc": "glibc 2.41"}, {})
    assert other_versions(measured(), now) == ["python 3.11.7 → 3.11.9", "libc – → glibc 2.41"]


def test_a_path_that_grew_fails_the_guard_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    baselines = Baselines([measured(get=1000, set=1000)])
    assert guard.judge(baselines, [measured(get=1000, set=1100)]) == guard.GREW
    told = capsys.readouterr()
    assert "above the baseline: set +10.00%\n" in told.err
    assert "get" not in told.err


def test_one_that_became_better_is_told_and_fails_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guard.judge(Baselines([measured(get=1000)]), [measured(get=800)]) == guard.OK
    assert "Better than the baseline: get -20.00%." in capsys.readouterr().out


def test_growth_counts_for_more_than_a_baseline_that_is_missing() -> None:
    baselines = Baselines([measured("pure", get=1000)])
    lacking, grown = measured("compiled", get=1), measured("pure", get=2000)
    assert guard.judge(baselines, [lacking, grown]) == guard.GREW
    assert guard.judge(baselines, [grown, lacking]) == guard.GREW


def test_without_a_baseline_the_guard_says_how_to_make_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = guard.judge(Baselines([]), [measured(get=1000)])
    assert "no baseline for this combination" in (told := capsys.readouterr().out)
    assert "RECORD=1" in told
    assert guard.forgiven(status, {}) == guard.OK
    assert guard.forgiven(status, {"CI": "true"}) == guard.NOTHING_TO_COMPARE
    assert guard.forgiven(guard.GREW, {}) == guard.GREW


def test_the_builds_of_another_checkout_are_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no checkout of Paddock"):
        guard.builds_of(tmp_path)
    (tmp_path / "src" / "paddock").mkdir(parents=True)
    assert guard.builds_of(tmp_path) == {"pure": tmp_path / "src"}
    compiled = tmp_path / "build" / "optimized"
    (compiled / "paddock").mkdir(parents=True)
    assert guard.builds_of(tmp_path) == {"compiled": compiled, "pure": tmp_path / "src"}


def test_each_path_has_a_baseline_for_both_builds_and_none_is_of_a_path_that_is_gone() -> None:
    found = Baselines.load(guard.BASELINES)
    for one in found.recorded:
        assert {*one.instructions} <= {*PATHS}, one.name
    # A new path gets its baseline on one kind of machine first.
    for build in ("compiled", "pure"):
        recorded = [one for one in found.recorded if one.combination["build"] == build]
        assert any(list(one.instructions) == list(PATHS) for one in recorded)


@pytest.mark.parametrize("name", PATHS)
def test_a_path_can_be_taken_and_all_of_it_is_answered(name: str) -> None:
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        assert runner.run(take(PATHS[name], 2)) == 2 * CROWD


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_was_not_taken_does_not_pass_for_one(name: str) -> None:
    async def scenario() -> None:
        path = await PATHS[name](WARM_UP_ROUNDS)
        with pytest.raises(BenchError):
            path.check(1)
        await path.close()

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        runner.run(scenario())


def test_a_refusal_does_not_pass_for_an_answer() -> None:
    async def scenario() -> None:
        heart = Heart()
        peer = await heart.peer()
        with pytest.raises(BenchError, match=r"bad: \[-101\]"):
            await heart.ask(peer, [request(opcodes.GET_DATA, WatchedRequest(b"/none", False))])

    with asyncio.Runner(loop_factory=StillLoop) as runner:
        runner.run(scenario())
