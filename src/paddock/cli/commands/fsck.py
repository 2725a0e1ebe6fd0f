"""`paddock fsck`: check a data folder, and write a repaired copy of it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from paddock.cli.arguments import PATH, WholeNumber, check_is_folder
from paddock.cli.cluster.log_options import check_is_no_cache
from paddock.cli.output import counted, one_line, time_text
from paddock.storage.data_directory import CACHE
from paddock.storage.maintenance.check import check
from paddock.storage.maintenance.cluster_check import ClusterReport, check_cluster_folder
from paddock.storage.maintenance.reach import Moment, Reach
from paddock.storage.maintenance.repair import Repaired, repair
from paddock.storage.maintenance.report import Finding, Report, SnapshotFound, StateFound
from paddock.storage.scan import Segment

_CACHE = (
    "paddock backup reads and checks that log, and a server checks its cache at each start. Nothing"
    " here is worth a repair but history, and a copy would not have it"
)


@click.command()
@click.argument("data", type=PATH)
@click.option(
    "--repair",
    "copy",
    metavar="COPY",
    type=PATH,
    help="Write what is whole to a new folder, which a server starts on. DATA is only read.",
)
@click.option(
    "--before",
    metavar="RECORD",
    type=WholeNumber(min=2),
    help="With --repair: leave this record out, and all that came behind it.",
)
@click.option("--json", "as_json", is_flag=True, help="Say it in JSON, for programs.")
def fsck(data: Path, copy: Path | None, before: int | None, as_json: bool) -> int:
    """Check a data folder: its log, its snapshots, and that they give what was served.

    It says how far back the state can be rebuilt, and where not. Nothing is changed, and a server
    may run on it. Of a server that shares a log, its history and its cache are checked.

    Status 0: it is fine; 1: it is damaged.
    """
    if before is not None and copy is None:
        raise click.UsageError("--before needs --repair: it says what a copy is to hold")
    with one_line():
        check_is_folder(data)
        if (data / CACHE).is_dir() and copy is None:
            return _check_cluster_folder(data, as_json)
        check_is_no_cache(data, _CACHE)
        repaired = None if copy is None else repair(data, copy, before)
        report = check(data) if repaired is None else repaired.report
    if as_json:
        click.echo(json.dumps(_as_json(report, repaired, copy), indent=2))
    else:
        click.echo("\n".join(_lines(report)))
        if repaired is not None:
            click.echo("\n".join(_repair_lines(repaired, copy)))
    return int(report.is_damaged)


def _check_cluster_folder(data: Path, as_json: bool) -> int:
    report = check_cluster_folder(data)
    if as_json:
        click.echo(json.dumps(_common_json(report), indent=2))
    else:
        click.echo("\n".join(_cluster_lines(report)))
    return int(report.is_damaged)


def _cluster_lines(report: ClusterReport) -> list[str]:
    lines = [f"data folder {report.folder}, of a server that shares a log"]
    lines += _user_lines(report.user)
    lines.append(f"  snapshots  {_snapshots(report.snapshots)}")
    lines.append(f"  recorded   {_segments(report.segments)}")
    lines += _history_lines(report.history)
    lines += _finding_lines(report.findings)
    if report.unusable:
        text = f"{counted(report.unusable, 'whole record')} at the end cannot be used yet"
        lines.append(f"{text}: there is no snapshot behind the last gap")
    return [*lines, "damaged" if report.is_damaged else "fine"]


def _lines(report: Report) -> list[str]:
    last_usable = report.state.index if report.state else 0
    lines = [f"data folder {report.folder}", *_user_lines(report.user)]
    lines.append(f"  format     {report.format or 'missing'}")
    lines.append(f"  snapshots  {_snapshots(report.snapshots)}")
    lines.append(f"  log        {_segments(report.segments)}")
    if report.state is not None:
        compared = f"{counted(report.digests, 'digest')} compared"
        lines.append(f"  state      {_state(report.state)}; {compared}")
        lines += _history_lines(report.history)
    lines += _finding_lines(report.findings)
    if report.unusable:
        lines.append(
            f"{counted(report.unusable, 'whole record')} behind the damage cannot be used; the last"
            f" one that can is {last_usable}"
        )
    if report.left_out:
        lines.append(
            f"{counted(report.left_out, 'whole record')} behind record {last_usable} left out"
        )
    lines.append("damaged" if report.is_damaged else "fine")
    return lines


def _user_lines(user: int | None) -> list[str]:
    if user is None:
        return []
    text = f"by process {user}" if user else "yes"
    return [f"  in use     {text}; its last writes may not be seen"]


def _snapshots(snapshots: list[SnapshotFound]) -> str:
    whole = [one.state for one in snapshots if one.state is not None]
    text = f"{counted(len(snapshots), 'file')}, {len(whole)} whole"
    return text + (f", the newest whole one: {_state(whole[-1])}" if whole else "")


def _segments(segments: list[Segment]) -> str:
    text = counted(len(segments), "file")
    records = sum(segment.records for segment in segments)
    if segments:
        text += f", {counted(records, 'whole record')}"
    if records:
        first = next(one.first_index for one in segments if one.records)
        text += f", {first} to {max(one.last_index for one in segments)}"
    return text


def _history_lines(history: Reach | None) -> list[str]:
    if history is None:
        return ["  history    none: there is nothing to begin with"]
    lines = [f"  history    from {_moment(history.begin)} to {_moment(history.end)}"]
    return lines + [
        f"             not behind record {gap.after}, up to {_moment(gap.resumes)}"
        for gap in history.gaps
    ]


def _moment(moment: Moment) -> str:
    when = time_text(moment.time_ms) if moment.time_ms else "the beginning"
    return f"{when} (record {moment.index}, zxid 0x{moment.zxid:x})"


def _finding_lines(findings: list[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        where = str(finding.file) + ("" if finding.offset is None else f", byte {finding.offset}")
        lines += [
            f"{'damage' if finding.is_damage else 'note'}: {where}: {finding.what}",
            f"  what to do: {finding.advice}",
        ]
    return lines


def _repair_lines(repaired: Repaired, copy: Path | None) -> list[str]:
    report, saved = repaired.report, repaired.saved
    lines = [f"repaired copy {copy}", f"  saved      {_state(saved)}"]
    if not report.loses:
        return [*lines, "  lost       nothing"]
    last = max(report.last_index, saved.index + 1)
    lost = (
        f"everything after record {saved.index} and zxid 0x{saved.zxid:x}: records"
        f" {saved.index + 1} to {last}"
    )
    if report.left_out:
        lost += f"; {report.left_out} of them are whole, and were to be left out"
    else:
        lost += (
            ", or more if the end of the log is missing too;"
            f" {report.unusable} of them are whole, but stand on what is missing"
        )
    goes_on = (
        f"at zxid 0x{repaired.zxid:x}, a new epoch, so that clients that have seen what is lost"
        " can connect"
    )
    return [*lines, f"  lost       {lost}", f"  goes on    {goes_on}"]


def _state(state: StateFound) -> str:
    nodes, sessions = counted(state.nodes, "node"), counted(state.sessions, "session")
    return f"record {state.index}, zxid 0x{state.zxid:x}, {nodes}, {sessions}"


def _as_json(report: Report, repaired: Repaired | None, copy: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        **_common_json(report),
        "format": report.format,
        "state": None if report.state is None else asdict(report.state),
        "digests_compared": report.digests,
        "loses": report.loses,
        "last_index": report.last_index,
        "left_out_records": report.left_out,
    }
    if repaired is not None:
        found["repaired"] = {
            "folder": str(copy),
            "saved": asdict(repaired.saved),
            "zxid": repaired.zxid,
        }
    return found


def _common_json(report: Report | ClusterReport) -> dict[str, Any]:
    return {
        "folder": str(report.folder),
        "damaged": report.is_damaged,
        "in_use_by": report.user,
        "snapshots": [{**asdict(one), "path": str(one.path)} for one in report.snapshots],
        "segments": [{**asdict(one), "path": str(one.path)} for one in report.segments],
        "history": None if report.history is None else asdict(report.history),
        "unusable_records": report.unusable,
        "findings": [{**asdict(one), "file": str(one.file)} for one in report.findings],
    }
