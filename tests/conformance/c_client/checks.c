/* Runs every check, one process each, and prints `ok NAME` or `failed NAME: why`.
 *
 * Arguments: the server's address, and the address of a relay to it that can be cut on request.
 */
#include "checks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEADLINE_S = 60, EVENT_DEADLINE_S = 30, CHECKS_MAX = 100, EVENTS_MAX = 1000, ANSWER_MAX = 1000 };

static struct {
    const char *name;
    void (*run)(void);
} checks[CHECKS_MAX];
static int checks_count;

static const char *direct_address;
static const char *relayed_address;

/* Of the check that runs, in its process. */
static const char *current;

struct session {
    zhandle_t *handle;
    pthread_mutex_t mutex;
    pthread_cond_t told;
    /* Invariant: taken <= count. */
    char *events[EVENTS_MAX];
    int count;
    int taken;
};

void add_check(const char *name, void (*check)(void)) {
    if (checks_count == CHECKS_MAX)
        abort();
    checks[checks_count].name = name;
    checks[checks_count++].run = check;
}

char *text(const char *format, ...) {
    char *made;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&made, format, arguments) < 0)
        abort();
    va_end(arguments);
    return made;
}

char *at(const char *name) {
    return text(*name ? "/%s/%s" : "/%s%s", current, name);
}

static void fail(const char *why) {
    printf("failed %s: %s\n", current, why);
    fflush(stdout);
    /* The client's threads are still at work: no handlers, no destructors. */
    _exit(0);
}

void expect_true(bool met, const char *what, const char *file, int line) {
    if (!met)
        fail(text("%s does not hold (%s:%d)", what, file, line));
}

void expect_number(int64_t expected, int64_t actual, const char *what, const char *file, int line) {
    if (expected != actual)
        fail(text("expected %lld, got %lld: %s (%s:%d)", (long long)expected, (long long)actual,
                  what, file, line));
}

void expect_text(const char *expected, const char *actual, const char *what, const char *file,
                 int line) {
    const char *wanted = expected ? expected : "nothing";
    const char *got = actual ? actual : "nothing";
    if (strcmp(wanted, got) != 0)
        fail(text("expected %s, got %s: %s (%s:%d)", wanted, got, what, file, line));
}

static const char *state_name(int state) {
    if (state == ZOO_CONNECTED_STATE)
        return "connected";
    if (state == ZOO_CONNECTING_STATE || state == ZOO_NOTCONNECTED_STATE)
        return "connecting";
    if (state == ZOO_EXPIRED_SESSION_STATE)
        return "expired";
    if (state == ZOO_AUTH_FAILED_STATE)
        return "auth failed";
    return "in another state";
}

static const char *event_name(int type) {
    if (type == ZOO_CREATED_EVENT)
        return "created";
    if (type == ZOO_DELETED_EVENT)
        return "deleted";
    if (type == ZOO_CHANGED_EVENT)
        return "changed";
    if (type == ZOO_CHILD_EVENT)
        return "children";
    return "other";
}

static void note(struct session *session, char *event) {
    pthread_mutex_lock(&session->mutex);
    if (session->count < EVENTS_MAX)
        session->events[session->count++] = event;
    pthread_cond_signal(&session->told);
    pthread_mutex_unlock(&session->mutex);
}

void note_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle;
    (void)state;
    /* The watcher of a node hears of the session too; that is the session's own affair. */
    if (type != ZOO_SESSION_EVENT)
        note(context, text("%s %s", event_name(type), path));
}

static void note_all(zhandle_t *handle, int type, int state, const char *path, void *context) {
    if (type == ZOO_SESSION_EVENT)
        note(context, text("session %s", state_name(state)));
    else
        note_event(handle, type, state, path, context);
}

static struct session *start(const char *address, const clientid_t *id) {
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        abort();
    pthread_mutex_init(&session->mutex, NULL);
    pthread_cond_init(&session->told, NULL);
    session->handle = zookeeper_init(address, note_all, SESSION_MS, id, session, 0);
    EXPECT(session->handle != NULL);
    return session;
}

struct session *start_session(const char *chroot, const clientid_t *id) {
    return start(text("%s%s", direct_address, chroot ? chroot : ""), id);
}

struct session *start_relayed_session(const clientid_t *id) {
    return start(relayed_address, id);
}

static struct session *connected(struct session *session) {
    EXPECT_EVENT(session, "session connected");
    return session;
}

struct session *open_session(void) {
    return connected(start(direct_address, NULL));
}

struct session *open_relayed_session(void) {
    return connected(start(relayed_address, NULL));
}

zhandle_t *handle(struct session *session) {
    return session->handle;
}

void close_session(struct session *session) {
    EXPECT_NUMBER(ZOK, zookeeper_close(session->handle));
    session->handle = NULL;
}

const char *next_event(struct session *session) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += EVENT_DEADLINE_S;
    const char *event = NULL;
    pthread_mutex_lock(&session->mutex);
    while (session->taken == session->count &&
           pthread_cond_timedwait(&session->told, &session->mutex, &limit) != ETIMEDOUT)
        ;
    if (session->taken < session->count)
        event = session->events[session->taken++];
    pthread_mutex_unlock(&session->mutex);
    return event;
}

void await_event(struct session *session, const char *event) {
    const char *next;
    while ((next = next_event(session)) && strcmp(next, event) != 0)
        ;
    expect_text(event, next, "the event waited for", __FILE__, __LINE__);
}

static void wake(int code, const char *value, const void *context) {
    (void)value;
    note((struct session *)context, text("synced %d", code));
}

void expect_no_event(struct session *session) {
    /* Completions and watchers run on one thread, in the order of what the server sent. */
    EXPECT_NUMBER(ZOK, zoo_async(session->handle, "/", wake, session));
    EXPECT_EVENT(session, "synced 0");
}

char *create(struct session *session, const char *name) {
    char *path = at(name);
    EXPECT_NUMBER(ZOK, zoo_create(session->handle, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
                                  ZOO_PERSISTENT, NULL, 0));
    return path;
}

char *ask(const char *request) {
    printf("please %s\n", request);
    fflush(stdout);
    char *answer = calloc(1, ANSWER_MAX + 1);
    if (!answer)
        abort();
    for (int length = 0;; length++) {
        EXPECT(length < ANSWER_MAX && read(STDIN_FILENO, answer + length, 1) == 1);
        if (answer[length] == '\n') {
            answer[length] = 0;
            return answer;
        }
    }
}

void please(const char *request) {
    EXPECT_TEXT("done", ask(request));
}

static void run(int number) {
    current = checks[number].name;
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        alarm(DEADLINE_S);
        create(open_session(), "");
        checks[number].run();
        printf("ok %s\n", current);
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("failed %s: not over after %d s\n", current, DEADLINE_S);
    else if (status != 0)
        printf("failed %s: ended with status 0x%x\n", current, (unsigned)status);
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    direct_address = arguments[1];
    relayed_address = arguments[2];
    zoo_set_debug_level((ZooLogLevel)0);
    for (int number = 0; number < checks_count; number++)
        run(number);
    return 0;
}
