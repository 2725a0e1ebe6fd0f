/* Nodes: created, read, written, deleted; one at a time, many at once, and in a transaction. */
#include "checks.h"

#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1000000 };

static struct ACL_vector *open_acl = &ZOO_OPEN_ACL_UNSAFE;

CHECK(every_kind_of_node_is_created) {
    struct session *session = open_session();
    zhandle_t *zh = handle(session);
    char name[256];
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_create(zh, at("plain"), "x", 1, open_acl, ZOO_PERSISTENT, name, 256));
    EXPECT_TEXT(at("plain"), name);
    EXPECT_NUMBER(ZOK,
                  zoo_create2(zh, at("mine"), "x", 1, open_acl, ZOO_EPHEMERAL, name, 256, &stat));
    EXPECT_NUMBER(zoo_client_id(zh)->client_id, stat.ephemeralOwner);
    EXPECT_NUMBER(ZOK, zoo_create(zh, at("n-"), "x", 1, open_acl, ZOO_PERSISTENT_SEQUENTIAL, name,
                                  256));
    EXPECT_TEXT(at("n-0000000002"), name);
    EXPECT_NUMBER(ZOK, zoo_create2(zh, at("n-"), "x", 1, open_acl, ZOO_EPHEMERAL_SEQUENTIAL, name,
                                   256, &stat));
    EXPECT_TEXT(at("n-0000000003"), name);
    EXPECT_NUMBER(ZOK, zoo_create2(zh, at("box"), "x", 1, open_acl, ZOO_CONTAINER, name, 256,
                                   &stat));
    EXPECT_NUMBER(0, stat.ephemeralOwner);
    EXPECT_NUMBER(ZOK, zoo_create_ttl(zh, at("t"), "x", 1, open_acl, ZOO_PERSISTENT_WITH_TTL,
                                      600000, name, 256));
    EXPECT_NUMBER(ZOK, zoo_create2_ttl(zh, at("t-"), "x", 1, open_acl,
                                       ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 600000, name, 256,
                                       &stat));
    EXPECT_TEXT(at("t-0000000006"), name);
    EXPECT_NUMBER(0, stat.version);
    EXPECT_NUMBER(1, stat.dataLength);
}

CHECK(data_is_read_and_written) {
    zhandle_t *zh = handle(open_session());
    char data[16];
    int length = sizeof data;
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_set2(zh, at(""), "four", 4, 0, &stat));
    EXPECT_NUMBER(1, stat.version);
    EXPECT_NUMBER(ZOK, zoo_get(zh, at(""), 0, data, &length, &stat));
    EXPECT_NUMBER(4, length);
    EXPECT(memcmp(data, "four", 4) == 0);
    struct Stat again;
    EXPECT_NUMBER(ZOK, zoo_exists(zh, at(""), 0, &again));
    EXPECT_NUMBER(stat.mzxid, again.mzxid);
    EXPECT_NUMBER(stat.mtime, again.mtime);
    EXPECT_NUMBER(4, again.dataLength);
    EXPECT_NUMBER(ZOK, zoo_set(zh, at(""), "more", 4, -1));
}

static int by_name(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

CHECK(children_are_listed) {
    struct session *session = open_session();
    create(session, "b");
    create(session, "a");
    create(session, "a/below");
    struct String_vector names;
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_get_children2(handle(session), at(""), 0, &names, &stat));
    EXPECT_NUMBER(2, names.count);
    EXPECT_NUMBER(2, stat.numChildren);
    qsort(names.data, names.count, sizeof *names.data, by_name);
    EXPECT_TEXT("a", names.data[0]);
    EXPECT_TEXT("b", names.data[1]);
    EXPECT_NUMBER(ZOK, zoo_get_children(handle(session), at("b"), 0, &names));
    EXPECT_NUMBER(0, names.count);
}

CHECK(what_is_wrong_is_told) {
    struct session *session = open_session();
    zhandle_t *zh = handle(session);
    struct Stat stat;
    create(session, "a");
    EXPECT_NUMBER(ZNONODE, zoo_exists(zh, at("missing"), 0, &stat));
    EXPECT_NUMBER(ZNONODE, zoo_delete(zh, at("missing"), -1));
    EXPECT_NUMBER(ZNONODE, zoo_create(zh, at("missing/x"), NULL, -1, open_acl, 0, NULL, 0));
    EXPECT_NUMBER(ZNODEEXISTS, zoo_create(zh, at("a"), NULL, -1, open_acl, 0, NULL, 0));
    EXPECT_NUMBER(ZNOTEMPTY, zoo_delete(zh, at(""), -1));
    EXPECT_NUMBER(ZBADVERSION, zoo_delete(zh, at("a"), 1));
    EXPECT_NUMBER(ZBADVERSION, zoo_set(zh, at("a"), "x", 1, 1));
    EXPECT_NUMBER(ZOK, zoo_create(zh, at("e"), NULL, -1, open_acl, ZOO_EPHEMERAL, NULL, 0));
    EXPECT_NUMBER(ZNOCHILDRENFOREPHEMERALS,
                  zoo_create(zh, at("e/x"), NULL, -1, open_acl, 0, NULL, 0));
    EXPECT_NUMBER(ZOK, zoo_delete(zh, at("a"), 0));
}

CHECK(null_and_empty_data_differ) {
    struct session *session = open_session();
    char data[16];
    int length = sizeof data;
    create(session, "null");
    EXPECT_NUMBER(ZOK, zoo_get(handle(session), at("null"), 0, data, &length, NULL));
    EXPECT_NUMBER(-1, length);
    EXPECT_NUMBER(ZOK, zoo_set(handle(session), at("null"), "", 0, -1));
    length = sizeof data;
    EXPECT_NUMBER(ZOK, zoo_get(handle(session), at("null"), 0, data, &length, NULL));
    EXPECT_NUMBER(0, length);
}

CHECK(large_data_comes_back) {
    zhandle_t *zh = handle(open_session());
    char *data = malloc(LARGE), *back = malloc(LARGE);
    EXPECT(data && back);
    for (int i = 0; i < LARGE; i++)
        data[i] = (char)(i % 251);
    int length = LARGE;
    EXPECT_NUMBER(ZOK, zoo_set(zh, at(""), data, LARGE, -1));
    EXPECT_NUMBER(ZOK, zoo_get(zh, at(""), 0, back, &length, NULL));
    EXPECT_NUMBER(LARGE, length);
    EXPECT(memcmp(data, back, LARGE) == 0);
}

CHECK(too_large_data_costs_the_connection_not_the_session) {
    struct session *session = open_session();
    zhandle_t *zh = handle(session);
    int64_t id = zoo_client_id(zh)->client_id;
    char *data = calloc(2, LARGE);
    EXPECT(data != NULL);
    EXPECT_NUMBER(ZCONNECTIONLOSS, zoo_set(zh, at(""), data, 2 * LARGE, -1));
    await_event(session, "session connected");
    EXPECT_NUMBER(id, zoo_client_id(zh)->client_id);
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_exists(zh, at(""), 0, &stat));
    EXPECT_NUMBER(0, stat.version);
}

/* Completions are events too: they are noted, by a watcher's rules, in the session's own list. */
struct asked {
    struct session *session;
    char *path;
};

static void created(int code, const char *value, const void *context) {
    const struct asked *asked = context;
    note_event(NULL, code == ZOK ? ZOO_CREATED_EVENT : 0, 0, value ? value : asked->path,
               asked->session);
}

static void got(int code, const char *value, int length, const struct Stat *stat,
                const void *context) {
    const struct asked *asked = context;
    bool right = code == ZOK && length == (int)strlen(asked->path) && stat->version == 0 &&
                 memcmp(value, asked->path, length) == 0;
    note_event(NULL, right ? ZOO_CHANGED_EVENT : 0, 0, asked->path, asked->session);
}

static void deleted(int code, const void *context) {
    const struct asked *asked = context;
    note_event(NULL, code == ZOK ? ZOO_DELETED_EVENT : 0, 0, asked->path, asked->session);
}

CHECK(asynchronous_replies_come_in_the_order_of_requests) {
    struct session *session = open_session();
    zhandle_t *zh = handle(session);
    enum { COUNT = 200 };
    struct asked asked[COUNT];
    for (int i = 0; i < COUNT; i++) {
        asked[i] = (struct asked){session, at(text("n%d", i))};
        const char *path = asked[i].path;
        EXPECT_NUMBER(ZOK, zoo_acreate(zh, path, path, (int)strlen(path), open_acl, 0, created,
                                       &asked[i]));
        EXPECT_NUMBER(ZOK, zoo_aget(zh, path, 0, got, &asked[i]));
        EXPECT_NUMBER(ZOK, zoo_adelete(zh, path, 0, deleted, &asked[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        EXPECT_EVENT(session, text("created %s", asked[i].path));
        EXPECT_EVENT(session, text("changed %s", asked[i].path));
        EXPECT_EVENT(session, text("deleted %s", asked[i].path));
    }
}

CHECK(a_multi_does_all_and_tells_each_outcome) {
    zhandle_t *zh = handle(open_session());
    zoo_op_t operations[5];
    zoo_op_result_t results[5];
    char plain[256], numbered[256];
    struct Stat stat;
    zoo_create_op_init(&operations[0], at("a"), "1", 1, open_acl, 0, plain, sizeof plain);
    zoo_check_op_init(&operations[1], at("a"), 0);
    zoo_set_op_init(&operations[2], at("a"), "2", 1, 0, &stat);
    zoo_create_op_init(&operations[3], at("n-"), "1", 1, open_acl, ZOO_PERSISTENT_SEQUENTIAL,
                       numbered, sizeof numbered);
    zoo_delete_op_init(&operations[4], at("a"), 1);
    EXPECT_NUMBER(ZOK, zoo_multi(zh, 5, operations, results));
    for (int i = 0; i < 5; i++)
        EXPECT_NUMBER(ZOK, results[i].err);
    EXPECT_TEXT(at("a"), plain);
    EXPECT_TEXT(at("n-0000000001"), numbered);
    EXPECT_NUMBER(1, stat.version);
    EXPECT_NUMBER(ZNONODE, zoo_exists(zh, at("a"), 0, &stat));
}

static void failing(zoo_op_t operations[3]) {
    zoo_create_op_init(&operations[0], at("a"), "1", 1, open_acl, 0, NULL, 0);
    zoo_delete_op_init(&operations[1], at("missing"), -1);
    zoo_create_op_init(&operations[2], at("b"), "1", 1, open_acl, 0, NULL, 0);
}

CHECK(a_failed_multi_does_nothing_and_names_what_failed) {
    zhandle_t *zh = handle(open_session());
    zoo_op_t operations[3];
    zoo_op_result_t results[3];
    failing(operations);
    EXPECT_NUMBER(ZNONODE, zoo_multi(zh, 3, operations, results));
    EXPECT_NUMBER(ZOK, results[0].err);
    EXPECT_NUMBER(ZNONODE, results[1].err);
    EXPECT_NUMBER(ZRUNTIMEINCONSISTENCY, results[2].err);
    struct Stat stat;
    EXPECT_NUMBER(ZNONODE, zoo_exists(zh, at("a"), 0, &stat));
}

static void multi_done(int code, const void *context) {
    const struct asked *asked = context;
    note_event(NULL, code == ZNONODE ? ZOO_CHANGED_EVENT : 0, 0, asked->path, asked->session);
}

CHECK(an_asynchronous_multi_tells_each_outcome) {
    struct session *session = open_session();
    zoo_op_t operations[3];
    zoo_op_result_t results[3];
    struct asked asked = {session, at("")};
    failing(operations);
    EXPECT_NUMBER(ZOK, zoo_amulti(handle(session), 3, operations, results, multi_done, &asked));
    EXPECT_EVENT(session, text("changed %s", at("")));
    EXPECT_NUMBER(ZNONODE, results[1].err);
    EXPECT_NUMBER(ZRUNTIMEINCONSISTENCY, results[2].err);
}

CHECK(containers_and_ttl_nodes_are_reaped) {
    struct session *session = open_session();
    zhandle_t *zh = handle(session);
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_create(zh, at("box"), NULL, -1, open_acl, ZOO_CONTAINER, NULL, 0));
    create(session, "box/child");
    EXPECT_NUMBER(ZOK, zoo_wexists(zh, at("box"), note_event, session, &stat));
    EXPECT_NUMBER(ZOK, zoo_delete(zh, at("box/child"), -1));
    EXPECT_EVENT(session, text("deleted %s", at("box")));
    EXPECT_NUMBER(ZOK, zoo_create_ttl(zh, at("t"), NULL, -1, open_acl, ZOO_PERSISTENT_WITH_TTL,
                                      300, NULL, 0));
    /* It may be gone before the watch is set; then there is nothing to be told. */
    if (zoo_wexists(zh, at("t"), note_event, session, &stat) == ZOK)
        EXPECT_EVENT(session, text("deleted %s", at("t")));
}

CHECK(the_configuration_is_empty_and_fixed) {
    zhandle_t *zh = handle(open_session());
    char data[16];
    int length = sizeof data;
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_getconfig(zh, 0, data, &length, &stat));
    EXPECT_NUMBER(0, length);
    length = sizeof data;
    EXPECT_NUMBER(ZRECONFIGDISABLED,
                  zoo_reconfig(zh, "server.2=127.0.0.1:1:2;3", NULL, NULL, -1, data, &length,
                               &stat));
}
