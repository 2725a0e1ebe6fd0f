"""Writing a state as a data folder, atomically.

The folder is made beside the place it is for and gets its name when everything in it is synced: a
run that is interrupted leaves the place as it was, and nothing that a server could start on.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk
from paddock.log.file.segments import begin_log
from paddock.log.interface import LogError
from paddock.state.machine import StateMachine
from paddock.storage.data_directory import DataDirectory, DataDirectoryError
from paddock.storage.layout import make_folder
from paddock.storage.state_swap import write_state
from paddock.upgrade.stream import UpgradeError

# As if one batch had been: then a log that begins behind it proves that the snapshot must be there.
_INDEX: Final = 1


def check_target(target: Path, *sources: Path) -> None:
    """Check that a folder can be made here: nothing is there, and it is not inside Apache's."""
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UpgradeError(f"{target}: is not an empty folder, and is left as it is")
        if os.path.ismount(target):
            raise UpgradeError(f"{target}: another disk begins here; name a folder below it")
        for source in sources:
            if target.resolve().is_relative_to(source.resolve()):
                raise UpgradeError(f"{target}: is in the folder that is taken over, {source}")
    except OSError as error:
        raise UpgradeError(f"{target}: cannot be read: {error.strerror}") from None


def write_data_folder(machine: StateMachine, target: Path) -> None:
    """Write the folder. Raises UpgradeError; then it is not there, or may not be durable."""
    # A link to the place stays one.
    target = target.resolve()
    temporary: Path | None = None
    try:
        make_folder(target.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        with DataDirectory(temporary) as directory:
            begin_log(directory.log_path, _INDEX, Disk())
            write_state(directory.snapshots_path, machine, _INDEX, Disk())
            Disk().sync_folder(temporary)
            temporary.rename(target)
            temporary = None
            Disk().sync_folder(target.parent)
    except OSError as error:
        raise UpgradeError(f"{target}: cannot be written: {error.strerror}") from None
    except (DataDirectoryError, LogError) as error:
        # Not its temporary name.
        raise UpgradeError(str(error).replace(str(temporary), str(target))) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
