/* Watches: they fire once, can be removed, and are set again on a new connection. */
#include "checks.h"

static void get(struct session *session, const char *path) {
    char data[16];
    int length = sizeof data;
    EXPECT_NUMBER(ZOK, zoo_wget(handle(session), path, note_event, session, data, &length, NULL));
}

static void list(struct session *session, const char *path) {
    struct String_vector names;
    EXPECT_NUMBER(ZOK, zoo_wget_children(handle(session), path, note_event, session, &names));
}

static void exists(int expected, struct session *session, const char *path) {
    struct Stat stat;
    EXPECT_NUMBER(expected, zoo_wexists(handle(session), path, note_event, session, &stat));
}

static void change(struct session *session, const char *path) {
    EXPECT_NUMBER(ZOK, zoo_set(handle(session), path, "x", 1, -1));
}

static void drop(struct session *session, const char *path) {
    EXPECT_NUMBER(ZOK, zoo_delete(handle(session), path, -1));
}

CHECK(watches_fire_once) {
    struct session *session = open_session(), *writer = open_session();
    get(session, at(""));
    list(session, at(""));
    exists(ZNONODE, session, at("a"));
    for (int round = 0; round < 2; round++) {
        change(writer, at(""));
        create(writer, "a");
        drop(writer, at("a"));
    }
    EXPECT_EVENT(session, text("changed %s", at("")));
    EXPECT_EVENT(session, text("created %s", at("a")));
    EXPECT_EVENT(session, text("children %s", at("")));
    expect_no_event(session);
}

CHECK(a_delete_is_told_once_to_both_kinds) {
    struct session *session = open_session(), *writer = open_session();
    create(writer, "a");
    get(session, at("a"));
    exists(ZOK, session, at("a"));
    drop(writer, at("a"));
    /* One watcher with one context, however often it was set. */
    EXPECT_EVENT(session, text("deleted %s", at("a")));
    expect_no_event(session);
}

CHECK(the_event_comes_before_what_shows_it) {
    struct session *session = open_session();
    get(session, at(""));
    change(session, at(""));
    EXPECT_EVENT(session, text("changed %s", at("")));
}

static int remove_one(struct session *session, ZooWatcherType kind) {
    return zoo_remove_watches(handle(session), at(""), kind, note_event, session, 0);
}

/* With a watcher named, the client only asks whether it is there; this is done by the server. */
static int remove_all(struct session *session, ZooWatcherType kind) {
    return zoo_remove_all_watches(handle(session), at(""), kind, 0);
}

static void expect_removed(int (*remove)(struct session *, ZooWatcherType)) {
    struct session *session = open_session(), *writer = open_session();
    get(session, at(""));
    list(session, at(""));
    EXPECT_NUMBER(ZOK, remove(session, ZWATCHTYPE_DATA));
    change(writer, at(""));
    create(writer, "a");
    EXPECT_EVENT(session, text("children %s", at("")));
    expect_no_event(session);
    get(session, at(""));
    list(session, at(""));
    EXPECT_NUMBER(ZOK, remove(session, ZWATCHTYPE_CHILD));
    create(writer, "b");
    change(writer, at(""));
    EXPECT_EVENT(session, text("changed %s", at("")));
    expect_no_event(session);
    get(session, at(""));
    list(session, at(""));
    EXPECT_NUMBER(ZOK, remove(session, ZWATCHTYPE_ANY));
    create(writer, "c");
    change(writer, at(""));
    expect_no_event(session);
}

CHECK(a_removed_watch_is_silent) {
    expect_removed(remove_one);
}

CHECK(all_watches_of_a_node_are_removed_at_once) {
    expect_removed(remove_all);
}

CHECK(a_watch_that_is_not_there_cannot_be_removed) {
    struct session *session = open_session();
    zhandle_t *zh = handle(session);
    EXPECT_NUMBER(ZNOWATCHER,
                  zoo_remove_watches(zh, at(""), ZWATCHTYPE_ANY, note_event, session, 0));
    get(session, at(""));
    EXPECT_NUMBER(ZNOWATCHER,
                  zoo_remove_watches(zh, at(""), ZWATCHTYPE_CHILD, note_event, session, 0));
}

CHECK(what_was_missed_is_told_after_a_reconnect) {
    struct session *session = open_relayed_session(), *writer = open_session();
    const char *changed = create(writer, "changed"), *grown = create(writer, "grown");
    const char *gone = create(writer, "gone"), *same = create(writer, "same");
    get(session, changed);
    list(session, grown);
    exists(ZOK, session, gone);
    exists(ZNONODE, session, at("coming"));
    get(session, same);
    list(session, same);
    please("close the relay");
    await_event(session, "session connecting");
    change(writer, changed);
    create(writer, "grown/child");
    drop(writer, gone);
    create(writer, "coming");
    please("open the relay");
    await_event(session, "session connected");
    /* In which order is the server's affair. */
    const char *expected[] = {text("changed %s", changed), text("children %s", grown),
                              text("deleted %s", gone), text("created %s", at("coming"))};
    bool told[4] = {false};
    for (int i = 0; i < 4; i++) {
        const char *event = next_event(session);
        int which = 0;
        while (event && which < 4 && (told[which] || strcmp(event, expected[which]) != 0))
            which++;
        if (!event || which == 4)
            EXPECT_TEXT("what was missed", event);
        told[which] = true;
    }
    expect_no_event(session);
    /* Those that had nothing to tell are still set. */
    change(writer, same);
    EXPECT_EVENT(session, text("changed %s", same));
    create(writer, "same/child");
    EXPECT_EVENT(session, text("children %s", same));
}
