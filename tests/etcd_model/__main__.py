"""`make etcd-model`: compare the model of etcd with a real one, and show how much it allows.

python -m tests.etcd_model --scripts 5000 --faults 240
python -m tests.etcd_model --scene restore --seed 7     # one script, with its story
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from tests.etcd_model.run import chunks, run_all, run_chunk, run_on_model
from tests.etcd_model.scenes import SCENES
from tests.etcd_model.share import Share
from tests.support.etcd import find_etcd, find_etcdctl
from tests.support.server import ServerMissingError

PAGE: Final = Path(__file__).parents[2] / "docs" / "explanation" / "etcd-model.md"
# The table of the page is between these.
FIGURES: Final = "<!-- figures -->"
END_OF_FIGURES: Final = "<!-- end of figures -->"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.etcd_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scripts", type=int, default=5000, help="how many, all in all")
    parser.add_argument("--faults", type=int, default=240, help="how many of them with faults")
    parser.add_argument("--first", type=int, default=0, help="the first seed of each scene")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--scene", choices=list(SCENES), help="play one script of a scene")
    parser.add_argument("--seed", type=int, default=0, help="its seed")
    parser.add_argument("--write", action="store_true", help="keep the table in its page")
    options = parser.parse_args()
    try:
        find_etcd()
        find_etcdctl()
    except ServerMissingError as missing:
        print(missing, file=sys.stderr)
        return 2
    if options.scene:
        return _conclude(run_chunk((options.scene, options.seed, 1)))
    wanted = chunks(options.scripts, options.faults, options.first)
    started = time.monotonic()
    share = Share()
    for chunk, part in run_all(wanted, options.processes):
        share.merge(part)
        scene, first, count = chunk
        print(f"{scene}: seeds {first} to {first + count - 1}", flush=True)
        if part.objections:
            print(part.objections[0], flush=True)
    simulated = Share()
    for chunk in chunks(options.scripts // 10, options.faults):
        simulated.merge(run_on_model(chunk))
    print(f"\n{time.monotonic() - started:.0f} s. The simulation's model, by the same judge:\n")
    print("\n".join(simulated.table()))
    print("\netcd:\n")
    if options.write:
        text = PAGE.read_text()
        before, after = text.index(FIGURES), text.index(END_OF_FIGURES)
        table = "".join(f"{line}\n" for line in share.table())
        PAGE.write_text(f"{text[:before]}{FIGURES}\n{table}{text[after:]}")
    return _conclude(share) or int(bool(simulated.objections))


def _conclude(share: Share) -> int:
    print("\n".join(share.table()))
    for scene, call, kind in share.never_given():
        print(f"never given: {scene}: {call}: {kind}")
    for fault in share.faults():
        print(fault)
    return 1 if share.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
