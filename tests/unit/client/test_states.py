"""How states and events are shown."""

from __future__ import annotations

from paddock.client.states import EventType, SessionState


def test_states_and_types_are_numbers_that_are_shown_by_their_names() -> None:
    assert int(SessionState.EXPIRED) == -112
    assert f"{SessionState.EXPIRED} {EventType.NONE!s} {EventType.NONE:>6}" == "EXPIRED NONE   NONE"
    assert f"{int(EventType.NONE)}" == "-1"
