/* Sessions and identities: what outlives a connection, and what does not. */
#include "checks.h"

#include <stdio.h>
#include <stdlib.h>

static int64_t owner(struct session *session, const char *path) {
    struct Stat stat;
    return zoo_exists(handle(session), path, 0, &stat) == ZOK ? stat.ephemeralOwner : 0;
}

static void create_ephemeral(struct session *session, const char *path) {
    EXPECT_NUMBER(ZOK, zoo_create(handle(session), path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
                                  ZOO_EPHEMERAL, NULL, 0));
}

static clientid_t id_of(struct session *session) {
    return *zoo_client_id(handle(session));
}

CHECK(closing_ends_the_session_and_its_nodes) {
    struct session *session = open_session(), *other = open_session();
    struct Stat stat;
    create_ephemeral(session, at("mine"));
    EXPECT_NUMBER(id_of(session).client_id, owner(other, at("mine")));
    EXPECT_NUMBER(ZOK, zoo_wexists(handle(other), at("mine"), note_event, other, &stat));
    close_session(session);
    EXPECT_EVENT(other, text("deleted %s", at("mine")));
}

CHECK(a_session_outlives_its_connection) {
    struct session *session = open_relayed_session();
    create_ephemeral(session, at("mine"));
    int64_t id = id_of(session).client_id;
    please("cut the relay");
    await_event(session, "session connected");
    EXPECT_NUMBER(id, id_of(session).client_id);
    EXPECT_NUMBER(id, owner(session, at("mine")));
}

CHECK(a_session_goes_on_in_another_client) {
    struct session *first = open_relayed_session();
    create_ephemeral(first, at("mine"));
    clientid_t id = id_of(first);
    /* Its connection is gone and does not come back: the session is free to be taken over. */
    please("close the relay");
    struct session *second = start_session(NULL, &id);
    EXPECT_EVENT(second, "session connected");
    EXPECT_NUMBER(id.client_id, id_of(second).client_id);
    EXPECT_NUMBER(id.client_id, owner(second, at("mine")));
    close_session(second);
    EXPECT_NUMBER(0, owner(open_session(), at("mine")));
    please("open the relay");
    await_event(first, "session expired");
}

CHECK(a_wrong_password_is_not_let_in) {
    struct session *session = open_session();
    create_ephemeral(session, at("mine"));
    clientid_t id = id_of(session);
    memset(id.passwd, 1, sizeof id.passwd);
    struct session *thief = start_session(NULL, &id);
    EXPECT_EVENT(thief, "session expired");
    struct Stat stat;
    EXPECT_NUMBER(ZINVALIDSTATE, zoo_exists(handle(thief), "/", 0, &stat));
    EXPECT_NUMBER(id.client_id, owner(open_session(), at("mine")));
}

CHECK(an_unknown_session_has_expired) {
    clientid_t id = {0x123456789abc, {0}};
    EXPECT_EVENT(start_session(NULL, &id), "session expired");
}

CHECK(a_chroot_hides_what_is_above_it) {
    struct session *session = start_session(at(""), NULL);
    EXPECT_EVENT(session, "session connected");
    char name[256];
    struct Stat stat;
    EXPECT_NUMBER(ZNONODE, zoo_wexists(handle(session), "/a", note_event, session, &stat));
    EXPECT_NUMBER(ZOK, zoo_create(handle(session), "/a", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, name,
                                  sizeof name));
    EXPECT_TEXT("/a", name);
    EXPECT_EVENT(session, "created /a");
    EXPECT_NUMBER(ZOK, zoo_exists(handle(open_session()), at("a"), 0, &stat));
}

static void authenticated(int code, const void *context) {
    note_event(NULL, code == ZOK ? ZOO_CHANGED_EVENT : 0, 0, "identity", (void *)context);
}

static void authenticate(struct session *session) {
    EXPECT_NUMBER(ZOK, zoo_add_auth(handle(session), "digest", "ann:secret", 10, authenticated,
                                    session));
    EXPECT_EVENT(session, "changed identity");
}

CHECK(a_digest_identity_opens_what_it_closed) {
    struct session *ann = open_relayed_session(), *stranger = open_session();
    authenticate(ann);
    EXPECT_NUMBER(ZOK, zoo_create(handle(ann), at("hers"), "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL,
                                  0));
    struct ACL_vector acl;
    struct Stat stat;
    EXPECT_NUMBER(ZOK, zoo_get_acl(handle(ann), at("hers"), &acl, &stat));
    EXPECT_NUMBER(1, acl.count);
    EXPECT_NUMBER(ZOO_PERM_ALL, acl.data[0].perms);
    EXPECT_TEXT("digest", acl.data[0].id.scheme);
    EXPECT(strncmp("ann:", acl.data[0].id.id, 4) == 0);
    char data[16];
    int length = sizeof data;
    EXPECT_NUMBER(ZNOAUTH, zoo_get(handle(stranger), at("hers"), 0, data, &length, NULL));
    EXPECT_NUMBER(ZNOAUTH, zoo_set(handle(stranger), at("hers"), "y", 1, -1));
    EXPECT_NUMBER(ZNOAUTH,
                  zoo_set_acl(handle(stranger), at("hers"), -1, &ZOO_OPEN_ACL_UNSAFE));
    /* The client sends its identities again on a new connection. */
    please("cut the relay");
    await_event(ann, "session connected");
    EXPECT_NUMBER(ZOK, zoo_get(handle(ann), at("hers"), 0, data, &length, NULL));
    EXPECT_NUMBER(ZBADVERSION, zoo_set_acl(handle(ann), at("hers"), 7, &ZOO_OPEN_ACL_UNSAFE));
    EXPECT_NUMBER(ZOK, zoo_set_acl(handle(ann), at("hers"), 0, &ZOO_OPEN_ACL_UNSAFE));
    EXPECT_NUMBER(ZOK, zoo_set(handle(stranger), at("hers"), "y", 1, -1));
}

CHECK(nobody_cannot_be_named_in_an_acl) {
    zhandle_t *zh = handle(open_session());
    EXPECT_NUMBER(ZINVALIDACL,
                  zoo_create(zh, at("a"), NULL, -1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
}

CHECK(an_unknown_scheme_fails) {
    struct session *session = open_session();
    EXPECT_NUMBER(ZOK, zoo_add_auth(handle(session), "no-such-scheme", "", 0, NULL, NULL));
    await_event(session, "session auth failed");
}

CHECK(a_session_outlives_the_server) {
    struct session *session = open_session();
    struct Stat stat;
    create_ephemeral(session, at("mine"));
    EXPECT_NUMBER(ZNONODE, zoo_wexists(handle(session), at("a"), note_event, session, &stat));
    int64_t id = id_of(session).client_id;
    please("restart the server");
    await_event(session, "session connected");
    EXPECT_NUMBER(id, id_of(session).client_id);
    EXPECT_NUMBER(id, owner(session, at("mine")));
    create(open_session(), "a");
    EXPECT_EVENT(session, text("created %s", at("a")));
}

/* A session that another kind of client has opened; a reply to that client is lost. */
CHECK(an_exact_session_goes_on_here_and_there_again) {
    unsigned long long number;
    char password[33], path[64];
    char *handed = ask("hand over an exact session");
    EXPECT_NUMBER(3, sscanf(handed, "%llx %32s %63s", &number, password, path));
    clientid_t id = {(int64_t)number, {0}};
    for (size_t i = 0; i < sizeof id.passwd; i++)
        EXPECT_NUMBER(1, sscanf(password + 2 * i, "%2hhx", (unsigned char *)&id.passwd[i]));
    struct session *heir = start_relayed_session(&id);
    EXPECT_EVENT(heir, "session connected");
    EXPECT_NUMBER(id.client_id, id_of(heir).client_id);
    EXPECT_NUMBER(id.client_id, owner(heir, path));
    EXPECT_NUMBER(ZOK, zoo_set(handle(heir), path, "once", 4, 1));
    please("cut the relay");
    await_event(heir, "session connected");
    EXPECT_NUMBER(id.client_id, id_of(heir).client_id);
    EXPECT(memcmp(id.passwd, id_of(heir).passwd, sizeof id.passwd) == 0);
    EXPECT_NUMBER(ZOK, zoo_set(handle(heir), path, "theirs", 6, 2));
    please("close the relay");
    const char *outcome = ask("take the exact session back");
    please("open the relay");
    EXPECT_TEXT("done", outcome);
    await_event(heir, "session expired");
}
