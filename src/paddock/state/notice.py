"""Notices for the operator about an entry that was applied.

The state does not log: an outcome carries a notice, and the server logs it. A notice is no part of
the state. Its sentence is formatted on demand, since most notices about quotas are never logged: a
client can cause them as fast as it can write.
"""

from __future__ import annotations

from paddock.state.limits import Quota


class Notice:
    """A notice for the operator."""

    __slots__ = ()

    def sentence(self) -> str:
        raise NotImplementedError


class Fault(Notice):
    """An internal error."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def sentence(self) -> str:
        return self._text


class QuotaNotice(Notice):
    """A notice about the quota of a node."""

    __slots__ = ("governed", "kind")

    def __init__(self, governed: bytes, kind: str) -> None:
        # The node that has the quota, and what about it. There may be many notices of one kind.
        self.governed = governed
        self.kind = kind


class OverLimit(QuotaNotice):
    """A write exceeds a limit, or was refused because of it."""

    __slots__ = ("is_hard", "is_refused", "_amount", "_limit", "_unit")

    def __init__(
        self, governed: bytes, amount: int, unit: str, limit: int, is_hard: bool, is_refused: bool
    ) -> None:
        super().__init__(governed, f"{unit}, {'hard' if is_hard else 'soft'}")
        self._amount = amount
        self._unit = unit
        self._limit = limit
        self.is_hard = is_hard
        self.is_refused = is_refused

    def sentence(self) -> str:
        path = self.governed.decode("utf-8", "replace")
        kind = "hard" if self.is_hard else "soft"
        if self.is_refused:
            end = ": refused"
        else:
            end = ", which is not enforced" if self.is_hard else ""
        return (
            f"quota of {path} exceeded: {self._amount} {self._unit}, "
            f"the {kind} limit is {self._limit}{end}"
        )


class UnusableQuota(QuotaNotice):
    """A quota without effect, since one of its nodes is missing or malformed."""

    __slots__ = ("_path",)

    def __init__(self, quota: Quota, path: bytes) -> None:
        super().__init__(quota.governed, "unusable")
        self._path = path

    def sentence(self) -> str:
        path = self._path.decode("utf-8", "replace")
        governed = self.governed.decode("utf-8", "replace")
        return f"quota of {governed} limits nothing: {path} is missing or cannot be read"
