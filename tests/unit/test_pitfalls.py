"""What has gone wrong in other clients of ZooKeeper, and the tests that say it does not here.

Bugs that their users have met again and again, each turned into a rule with at least one test that
would fail without it. The table is the index; that its tests are there is checked here.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]

# By rule and file.
RULES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "names beside ours are strangers: they are ignored, whatever they look like": {
        "fault/test_client_pitfalls.py": (
            "test_a_protected_create_finds_its_own_node_among_strangers",
        ),
        "integration/test_client.py": ("test_a_protected_create_has_a_mark_in_its_name",),
    },
    "whoever fails or is cancelled leaves nothing behind that blocks others": {
        "fault/test_lock_pitfalls.py": (
            "test_a_cancelled_acquire_leaves_no_node_behind_also_if_the_create_was_never_answered",
        ),
        "fault/test_lock_faults.py": ("test_a_lock_in_every_trouble",),
        "fault/test_rw_lock_faults.py": (
            "test_a_writer_that_goes_on_as_a_reader_in_every_trouble",
        ),
        "fault/test_semaphore_faults.py": ("test_a_semaphore_in_every_trouble",),
        "fault/test_multi_lock_faults.py": ("test_several_locks_in_trouble",),
    },
    "there are never more leases than a semaphore has": {
        "property/test_semaphore_model.py": (
            "test_there_are_never_more_holders_than_leases",
            "test_somebody_can_always_go_on",
        ),
        "integration/recipes/test_semaphore.py": ("test_there_are_never_more_holders_than_leases",),
        "fault/test_semaphore_faults.py": ("test_a_semaphore_in_every_trouble",),
        "fault/test_recipe_storm.py": ("test_every_recipe_survives_a_storm",),
    },
    "a reader and a writer never wait for each other": {
        "unit/recipes/locks/test_line.py": (
            "test_nobody_ever_waits_for_who_waits_for_it",
            "test_it_is_the_number_that_counts_and_neither_the_mark_nor_the_kind",
        ),
        "integration/recipes/test_rw_lock.py": (
            "test_a_reader_cannot_become_a_writer_and_is_told",
            "test_a_writer_goes_on_as_a_reader_before_any_other_writes",
        ),
    },
    "a holder is told that it has lost what it holds, or may have": {
        "integration/recipes/test_lock.py": (
            "test_an_expired_session_ends_the_holders_scope_and_the_next_has_it",
            "test_a_deleted_node_ends_the_holders_scope",
            "test_a_holder_is_told_while_its_connection_is_lost",
        ),
        "fault/test_lock_faults.py": ("test_a_lock_in_every_trouble",),
    },
    "a deadline is one for the whole call": {
        "fault/test_lock_pitfalls.py": (
            "test_a_deadline_is_one_for_the_whole_call_however_often_a_waiter_wakes_up",
        ),
    },
    "sequence numbers are compared as numbers, past the largest one, too": {
        "unit/recipes/locks/test_line.py": (
            "test_numbers_are_in_the_order_in_which_the_service_gives_them",
            "test_strangers_do_not_stand_in_the_line",
        ),
        "integration/recipes/test_lock.py": ("test_strangers_below_the_lock_are_of_no_matter",),
    },
    "who has gone before it could be watched is not waited for": {
        "fault/test_lock_pitfalls.py": (
            "test_who_has_gone_before_it_could_be_watched_is_not_waited_for",
        ),
    },
    "what was deleted before it could be read holds up no reader": {
        "integration/recipes/test_log_room.py": (
            "test_an_entry_that_was_deleted_first_is_skipped",
            "test_who_joins_while_a_channel_is_deleted_gets_what_is_there",
        ),
    },
    "it is the tasks of the dead that go to others, and each has one result": {
        "integration/recipes/test_master_worker.py": (
            "test_the_tasks_of_a_dead_worker_go_to_others",
            "test_a_master_that_fails_is_followed_by_another",
        ),
        "fault/test_master_worker_faults.py": (
            "test_a_master_and_worker_that_is_killed_is_followed_by_another",
        ),
    },
    "a service that anybody has unregistered stays gone, although its owner lives": {
        "fault/test_discovery_faults.py": (
            "test_four_services_come_and_go_and_each_is_told_as_it_should_be",
            "test_an_unregistered_one_stays_gone_for_as_long_as_its_owner_lives",
        ),
    },
    "what is released is free when the service says so": {
        "fault/test_lock_pitfalls.py": (
            "test_a_release_is_over_when_the_service_has_confirmed_it",
            "test_whoever_takes_it_again_after_a_release_that_was_given_up_does_not_wait_for_itself",
        ),
    },
    "an ephemeral node of an older session of ours is not ours": {
        "fault/test_client_pitfalls.py": (
            "test_a_node_of_a_session_that_is_over_is_never_taken_for_ours",
        ),
        "fault/test_client_hostile.py": ("test_another_session_than_ours_is_none",),
        "integration/recipes/test_membership.py": (
            "test_a_name_that_an_older_session_of_ours_has_is_waited_for",
            "test_a_name_is_waited_for_within_one_client_as_well",
        ),
        "integration/recipes/test_election.py": (
            "test_a_node_of_an_older_session_of_ours_leads_until_it_has_gone",
        ),
        "integration/recipes/test_persistent_node.py": (
            "test_an_ephemeral_of_an_older_session_is_waited_for",
        ),
        "integration/recipes/test_discovery.py": (
            "test_a_registration_is_restored_after_an_expired_session",
        ),
    },
    "nothing is made after close": {
        "integration/recipes/test_persistent_node.py": ("test_a_node_that_is_closed_stays_closed",),
        "fault/test_persistent_node_faults.py": ("test_a_node_that_is_kept_in_every_trouble",),
        "fault/test_discovery_faults.py": (
            "test_a_session_that_comes_after_the_end_of_the_registry_is_ended",
        ),
    },
    "a cache has no change twice or out of order, and in the end equals the service's tree": {
        "integration/recipes/test_cache.py": (
            "test_it_equals_the_tree_whenever_both_are_quiet",
            "test_it_equals_the_tree_after_lost_connections",
            "test_readers_of_changes_always_know_the_tree_however_slow_they_are",
            "test_a_node_that_was_made_anew_is_seen_as_another_one",
        ),
        "fault/test_cache_faults.py": ("test_a_cache_in_every_trouble",),
    },
    "one leader at a time, and nobody stands for election after the stop or the close": {
        "integration/recipes/test_election.py": (
            "test_ten_candidates_who_step_down_as_soon_as_they_lead",
            "test_a_node_of_an_older_session_of_ours_leads_until_it_has_gone",
            "test_nothing_is_created_after_the_stop",
            "test_nothing_is_created_after_the_client_was_closed",
        ),
        "fault/test_election_faults.py": (
            "test_the_scope_of_a_leader_in_trouble",
            "test_an_election_in_the_background_in_trouble",
        ),
    },
    "a barrier looks again whatever wakes it up, and opens only when it is full": {
        "integration/recipes/test_barrier.py": (
            "test_fewer_than_its_size_wait_whatever_happens_beside_them",
            "test_a_lost_connection_neither_opens_a_gate_nor_hides_that_it_was_opened",
            "test_who_dies_before_the_barrier_opens_is_not_counted",
            "test_who_dies_within_is_told_and_holds_up_nobody",
        ),
        "fault/test_barrier_faults.py": (
            "test_a_double_barrier_in_every_trouble",
            "test_who_came_first_in_trouble",
            "test_who_waits_at_a_gate_in_trouble",
        ),
        "fault/test_recipe_races.py": (
            "test_a_barrier_does_not_open_for_one_who_has_gone_since_it_was_counted",
        ),
    },
    "an item of a queue is neither lost, doubled nor acknowledged twice by a lost reply": {
        "fault/test_queue_faults.py": (
            "test_a_consumer_in_every_trouble",
            "test_a_producer_in_trouble",
            "test_a_dead_letter_in_trouble",
        ),
        "fault/test_recipe_races.py": (
            "test_an_item_that_is_consumed_before_its_producer_hears_of_it_is_not_put_again",
            "test_an_acknowledgement_that_comes_too_late_is_refused",
        ),
    },
    "what a consumer has left behind blocks nobody": {
        "integration/recipes/test_queue.py": (
            "test_a_killed_consumers_item_goes_to_the_next_with_its_attempts",
            "test_a_cancelled_consumer_gives_its_item_back",
            "test_nothing_of_what_was_used_is_left",
        ),
    },
    "two consumers never have one item, and the number in a name is its own": {
        "integration/recipes/test_queue.py": (
            "test_every_item_is_consumed_once_by_many_consumers",
            "test_who_has_lost_an_item_can_neither_acknowledge_it_nor_write_under_it",
        ),
        "unit/recipes/queue/test_queue_index.py": (
            "test_a_name_says_everything_and_keeps_the_zeros_of_its_number",
            "test_priorities_and_numbers_are_compared_as_numbers",
        ),
    },
    "watches survive a reconnect, however many they are": {
        "fault/test_client_pitfalls.py": (
            "test_ten_thousand_watches_with_long_paths_survive_a_reconnect",
            "test_only_unfired_watches_are_set_again_with_the_last_zxid_that_was_seen",
        ),
        "unit/client/watches/test_watches.py": (
            "test_all_unfired_watches_are_set_again_in_pieces_of_a_bounded_size",
        ),
    },
    "a blocking call within a callback does not hang, and in an event loop is refused": {
        "integration/test_sync.py": (
            "test_a_watcher_may_make_calls",
            "test_the_thread_of_an_event_loop_is_refused",
        ),
        "unit/sync/test_portal.py": ("test_a_thread_with_an_event_loop_is_refused",),
    },
    "closing loses nothing that was asked before, and hangs for nobody": {
        "fault/test_client_silence.py": (
            "test_closing_waits_for_what_was_asked_before",
            "test_every_pending_call_gets_an_error_when_the_client_is_closed",
        ),
        "fault/test_client_cancelled.py": ("test_closing_can_be_cancelled_at_any_time",),
    },
    "an addition whose reply was lost is not made twice": {
        "fault/test_counter_faults.py": (
            "test_a_counter_in_every_trouble",
            "test_a_lost_addition_counts_once_although_others_have_added_since",
        ),
    },
    "errors name operation, path and code": {
        "integration/test_client.py": ("test_errors_name_operation_and_path",),
        "fault/test_client_pitfalls.py": (
            "test_errors_name_what_was_asked_where_and_with_which_code",
        ),
    },
    "secrets are never logged": {
        "fault/test_client_pitfalls.py": ("test_no_secret_is_in_a_log_or_a_message",),
        "integration/test_client_sasl.py": ("test_a_password_is_shown_nowhere",),
    },
    "an unknown code is a plain refusal": {
        "fault/test_client_hostile.py": (
            "test_an_unknown_code_is_a_plain_refusal_and_the_session_goes_on",
        ),
    },
    "a forked child that uses its parent's client is told": {
        "integration/test_sync_processes.py": (
            "test_a_forked_child_is_told_and_leaves_its_parent_alone",
        ),
    },
}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_the_tests_that_the_table_names(rule: str) -> None:
    assert RULES[rule]
    for file, names in RULES[rule].items():
        module = ast.parse((TESTS / file).read_text())
        tests = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
        assert names
        assert set(names) <= tests, file
