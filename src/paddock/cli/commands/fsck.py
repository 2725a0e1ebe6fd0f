"""`paddock fsck`: check a data folder, and write a repaired copy of it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from paddock.cli.arguments import PATH, WholeNumber, check_is_folder
from paddock.cli.cluster.log_options import check_is_no_cache
from paddock.cli.output import counted, one_line
from paddock.storage.maintenance.check import Report, StateFound, check
from paddock.storage.maintenance.repair import Repaired, repair

_CACHE = (
    "paddock backup reads and checks that log, and a server checks its cache at each start. The"
    " folder may be deleted"
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

    Nothing is changed, and a server may run on it. Status 0: it is fine; 1: it is damaged.
    """
    if before is not None and copy is None:
        raise click.UsageError("--before needs --repair: it says what a copy is to hold")
    with one_line():
        check_is_folder(data)
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


def _lines(report: Report) -> list[str]:
    newest = report.newest
    last_usable = report.state.index if report.state else 0
    lines = [f"data folder {report.folder}"]
    if report.user is not None:
        user = f"by process {report.user}" if report.user else "yes"
        lines.append(f"  in use     {user}; its last writes may not be seen")
    lines.append(f"  format     {report.format or 'missing'}")
    usable = sum(one.state is not None for one in report.snapshots)
    text = f"{counted(len(report.snapshots), 'file')}, {usable} whole"
    if newest is not None and newest.state is not None:
        text += f", the newest whole one: {_state(newest.state)}"
    lines.append(f"  snapshots  {text}")
    text = counted(len(report.segments), "file")
    if report.segments:
        records = sum(segment.records for segment in report.segments)
        first = next((one.first_index for one in report.segments if one.records), 0)
        last = max(segment.last_index for segment in report.segments)
        text += f", {counted(records, 'whole record')}" + (
            f", {first} to {last}" if records else ""
        )
    lines.append(f"  log        {text}")
    if report.state is not None:
        compared = f"{counted(report.digests, 'digest')} compared"
        lines.append(f"  state      {_state(report.state)}; {compared}")
    for finding in report.findings:
        where = str(finding.file) + ("" if finding.offset is None else f", byte {finding.offset}")
        lines += [
            f"{'damage' if finding.is_damage else 'note'}: {where}: {finding.what}",
            f"  what to do: {finding.advice}",
        ]
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
        "folder": str(report.folder),
        "damaged": report.is_damaged,
        "in_use_by": report.user,
        "format": report.format,
        "snapshots": [{**asdict(one), "path": str(one.path)} for one in report.snapshots],
        "segments": [{**asdict(one), "path": str(one.path)} for one in report.segments],
        "state": None if report.state is None else asdict(report.state),
        "digests_compared": report.digests,
        "loses": report.loses,
        "last_index": report.last_index,
        "unusable_records": report.unusable,
        "left_out_records": report.left_out,
        "findings": [{**asdict(one), "file": str(one.file)} for one in report.findings],
    }
    if repaired is not None:
        found["repaired"] = {
            "folder": str(copy),
            "saved": asdict(repaired.saved),
            "zxid": repaired.zxid,
        }
    return found
