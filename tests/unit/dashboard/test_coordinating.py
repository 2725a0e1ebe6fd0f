"""Recipes with the addresses of those who hold them."""

from paddock.dashboard.coordinating import with_addresses


def test_contenders_get_the_addresses_of_their_sessions() -> None:
    fields = {
        "recipes": [
            {
                "path": "/lock",
                "holders": [{"session": "0x1", "address": None}],
                "waiters": [{"session": "0x2"}, {"session": None}],
            },
            {"path": "/queue"},
        ],
        "is_complete": True,
    }
    found = with_addresses(fields, {"0x1": "h:1", "0x2": "h:2"})
    lock, queue = found["recipes"]
    assert [one["address"] for one in lock["holders"]] == ["h:1"]
    assert [one["address"] for one in lock["waiters"]] == ["h:2", None]
    assert (queue, found["is_complete"]) == ({"path": "/queue"}, True)
