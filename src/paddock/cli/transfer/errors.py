"""What stops a transfer, in one line that says where."""

from paddock.errors import PaddockError


class TransferError(PaddockError):
    """It cannot be done, or not like this."""


class DamagedExportError(TransferError):
    """A file is not what an export should be; the message names the line and the byte."""
