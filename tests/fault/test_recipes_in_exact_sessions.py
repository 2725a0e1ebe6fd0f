"""Every recipe in an exact session: no mark is needed to know what became of a write.

The stories are those of the other tests, which play them in ordinary sessions. Here the connection
is cut before and after each request, or the subject is cancelled while a reply is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.fault import (
    test_barrier_faults,
    test_cache_faults,
    test_counter_faults,
    test_discovery_faults,
    test_election_faults,
    test_kazoo_layout_faults,
    test_lease_faults,
    test_lock_faults,
    test_log_room_faults,
    test_master_worker_faults,
    test_membership_faults,
    test_multi_lock_faults,
    test_naming_faults,
    test_partitioner_faults,
    test_persistent_node_faults,
    test_queue_faults,
    test_revocation_faults,
    test_rw_lock_faults,
    test_semaphore_faults,
)
from tests.fault.stage.recipe_stage import Story
from tests.fault.stage.recipe_troubles import TROUBLES, with_every_cut

# What does without marks in an exact session.
UNMARKED: Final = {
    "barrier": test_barrier_faults.CLOSING,
    "counter": test_counter_faults.COUNTING,
    "name": test_naming_faults.NAMING,
    "producer": test_queue_faults.PRODUCER,
    "value": test_counter_faults.APPENDING,
}
MARKED: Final = {
    "asker": test_revocation_faults.ASKING,
    "cache": test_cache_faults.STORY,
    "configuration": test_naming_faults.CONFIGURED,
    "consumer": test_queue_faults.IN_MANY_HANDS,
    "double barrier": test_barrier_faults.COMPLETED,
    "election": test_election_faults.SCOPE,
    "instance": test_discovery_faults.SERVED,
    "kazoo semaphore": test_kazoo_layout_faults.SEMAPHORE,
    "lease": test_lease_faults.RENEWED,
    "lock": test_lock_faults.IN_THE_MIDDLE,
    "log room": test_log_room_faults.WRITING,
    "master": test_master_worker_faults.A_MASTER,
    "member": test_membership_faults.MEMBER,
    "multi lock": test_multi_lock_faults.IN_THE_MIDDLE,
    "mutex": test_lock_faults.MUTEX,
    "partitioner": test_partitioner_faults.STORY,
    "persistent node": test_persistent_node_faults.IN_THE_MIDDLE,
    "read write lock": test_rw_lock_faults.FROM_WRITING_TO_READING,
    "semaphore": test_semaphore_faults.IN_THE_MIDDLE,
    "submitter": test_master_worker_faults.A_CLIENT,
    "worker": test_master_worker_faults.A_WORKER,
}
STORIES: Final[dict[str, Story]] = UNMARKED | MARKED
# Played in every run; the others take longer.
SOON: Final = {*UNMARKED, "lock", "mutex", "log room"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name not in SOON)) for name in STORIES],
)
def test_a_recipe_loses_its_connection(name: str) -> None:
    assert with_every_cut(replace(STORIES[name], exact=True)) > 1


@pytest.mark.parametrize(
    "trouble",
    [
        "the session ended",
        "every cancellation on a lost connection",
        pytest.param("every fault", marks=pytest.mark.long),
        pytest.param("every two cuts", marks=pytest.mark.long),
        pytest.param("every cancellation", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("name", UNMARKED)
def test_what_has_no_marks_in_other_trouble(name: str, trouble: str) -> None:
    assert TROUBLES[trouble](replace(UNMARKED[name], exact=True)) > 1
