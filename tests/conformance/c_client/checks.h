/* Named checks of a server through Apache's C client: what they are written with.
 *
 * A check runs in a process of its own, so that it may end anywhere and leave anything behind: the
 * first demand that is not met is reported, and ends it.
 */
#ifndef CHECKS_H
#define CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

/* CHECK(name) { ... } is a check; its name says what must hold. */
#define CHECK(name)                                                                                \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void add_##name(void) { add_check(#name, name); }          \
    static void name(void)

void add_check(const char *name, void (*check)(void));

/* Demands. Codes and numbers are compared as numbers, text may be NULL. */
#define EXPECT(condition) expect_true((condition), #condition, __FILE__, __LINE__)
#define EXPECT_NUMBER(expected, actual)                                                            \
    expect_number((expected), (actual), #actual, __FILE__, __LINE__)
#define EXPECT_TEXT(expected, actual) expect_text((expected), (actual), #actual, __FILE__, __LINE__)
#define EXPECT_EVENT(session, expected)                                                            \
    expect_text((expected), next_event(session), "the next event", __FILE__, __LINE__)

void expect_true(bool met, const char *what, const char *file, int line);
void expect_number(int64_t expected, int64_t actual, const char *what, const char *file, int line);
void expect_text(const char *expected, const char *actual, const char *what, const char *file,
                 int line);

enum { SESSION_MS = 20000 };

/* A session, and what it has been told: `KIND PATH` for a node, `session STATE` for itself. */
struct session;

/* Sessions on the way that can be cut, if `relayed`; connected when they are returned. */
struct session *open_session(void);
struct session *open_relayed_session(void);

/* A session below a chroot, with an id, or neither (NULL); not waited for. */
struct session *start_session(const char *chroot, const clientid_t *id);
struct session *start_relayed_session(const clientid_t *id);

zhandle_t *handle(struct session *session);
void close_session(struct session *session);

/* Waits for the next event; NULL if none comes. */
const char *next_event(struct session *session);

/* Lets events go until this one comes. */
void await_event(struct session *session, const char *event);

/* Demands that nothing has been told that was not asked for. */
void expect_no_event(struct session *session);

/* Notes the event in the session that is the context: a watcher for the calls that take one. */
void note_event(zhandle_t *handle, int type, int state, const char *path, void *context);

/* The path of a node below the check's own node (its own node itself, with ""). */
char *at(const char *name);

/* `format` filled in. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Creates a node that anybody may use; returns its path. */
char *create(struct session *session, const char *name);

/* Ask whoever runs this program, and wait until it is done, or for the answer. */
void please(const char *request);
char *ask(const char *request);

#endif
