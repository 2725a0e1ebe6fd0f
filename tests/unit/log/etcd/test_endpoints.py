"""Which member of etcd is asked next."""

from __future__ import annotations

from paddock.log.etcd.endpoints import Endpoints, Failure


class Members:
    """Members at a clock that tests move."""

    def __init__(self, *names: str) -> None:
        self.now = 0.0
        self.endpoints = Endpoints(names, lambda: self.now)

    @property
    def next(self) -> str:
        return self.endpoints.next().endpoint

    def fail(self, *how: Failure) -> list[str]:
        """Have whichever is next fail, one after another; return who it was."""
        failed = []
        for one in how:
            member = self.endpoints.next()
            failed.append(member.endpoint)
            self.endpoints.failed(member, one)
        return failed

    def served(self) -> None:
        self.endpoints.served(self.endpoints.next())

    def pass_rest(self) -> float:
        """Let the rest of the next one pass; return how long it was."""
        wait_s = self.endpoints.wait_s()
        self.now += wait_s
        return round(wait_s, 3)


def test_members_take_turns_in_the_given_order() -> None:
    members = Members("a", "b", "c")
    assert members.fail(*[Failure.UNREACHABLE] * 3) == ["a", "b", "c"]
    assert members.pass_rest() == 0.1
    assert members.next == "a"


def test_what_cannot_be_reached_is_asked_ever_more_rarely_until_it_answers() -> None:
    members = Members("a")
    rests = []
    for _ in range(6):
        members.fail(Failure.UNREACHABLE)
        rests.append(members.pass_rest())
    assert rests == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    members.served()
    members.fail(Failure.UNREACHABLE)
    assert members.pass_rest() == 0.1


def test_members_without_a_leader_are_asked_often() -> None:
    members = Members("a", "b")
    for _ in range(10):
        members.fail(Failure.ANSWERED, Failure.ANSWERED)
        assert members.pass_rest() == 0.1


def test_a_silent_member_is_not_asked_while_another_answers() -> None:
    members = Members("s", "a", "b")
    assert members.fail(Failure.SILENT, Failure.ANSWERED, Failure.ANSWERED) == ["s", "a", "b"]
    while members.now < 3.9:
        assert members.pass_rest() <= 0.1
        assert members.fail(Failure.ANSWERED) != ["s"]


def test_a_silent_member_rests_longer_each_time_until_it_answers() -> None:
    members = Members("s", "a")
    times = []
    while members.now < 50:
        members.pass_rest()
        if members.next == "s":
            times.append(round(members.now))
            members.fail(Failure.SILENT)
        else:
            members.fail(Failure.ANSWERED)
    # It rests for 4, 8, 16 and 16 s.
    assert times == [0, 4, 12, 28, 44]


def test_a_member_that_nobody_has_asked_comes_before_one_that_failed() -> None:
    members = Members("a", "s", "b")
    assert members.fail(Failure.ANSWERED, Failure.SILENT) == ["a", "s"]
    assert members.next == "b"


def test_silent_members_are_asked_again_soon_if_none_answers() -> None:
    """The last way to etcd is not given up, however silent it was."""
    members = Members("s", "a", "b")
    members.fail(Failure.SILENT, Failure.UNREACHABLE, Failure.UNREACHABLE)
    assert members.pass_rest() == 0.1
    assert members.next == "s"
    members.fail(*[Failure.SILENT] * 3)
    assert members.pass_rest() == 0.1


def test_a_member_that_answered_and_is_silent_now_answers_no_more() -> None:
    members = Members("a", "s")
    members.fail(Failure.ANSWERED, Failure.SILENT)
    members.pass_rest()
    assert members.fail(Failure.SILENT) == ["a"]
    assert members.endpoints.wait_s() <= 0.1


def test_all_have_failed_until_one_serves() -> None:
    members = Members("a", "b")
    members.fail(Failure.UNREACHABLE)
    assert not members.endpoints.have_all_failed()
    members.fail(Failure.ANSWERED)
    assert members.endpoints.have_all_failed()
    members.served()
    assert not members.endpoints.have_all_failed()


def test_members_that_stay_keep_what_is_known_of_them() -> None:
    members = Members("s", "a")
    members.fail(Failure.SILENT, Failure.ANSWERED)
    members.endpoints.replace(("s", "b", "a"))
    assert members.endpoints.names == ("s", "b", "a")
    assert members.next == "b"
    members.fail(Failure.ANSWERED)
    members.pass_rest()
    assert members.next == "a"


def test_one_that_was_replaced_fails_without_consequences() -> None:
    members = Members("a", "b")
    gone = members.endpoints.next()
    members.endpoints.replace(("b", "c"))
    assert gone not in members.endpoints
    members.endpoints.failed(gone, Failure.SILENT)
    assert members.next == "b"
