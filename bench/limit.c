// limit: about the least that a server must do to answer zkload, as a yardstick for real ones.
//
// It speaks as much of ZooKeeper's protocol as zkload does: a handshake, pings, create, delete,
// exists, get, set and children. There are no sessions, watches, ACLs, quotas or restarts, and it
// trusts its client. What it does do is what the work itself takes:
//
// * One thread reads, answers and writes; epoll tells it where. All requests of one read are
//   answered with one write.
// * A read is one lookup in a table, and one copy.
// * A write changes the table and is appended to a log. Its reply is held until the log is synced;
//   a thread syncs, once for all that has gathered meanwhile. What a client asks behind a write
//   of its own is answered behind it.
//
// Build: gcc -O2 -pthread -o limit limit.c
// Run: limit PORT FILE

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_MAX (256 << 10)
#define READY_MAX 256
#define STAT_SIZE 68
#define REPLY_HEADER 20     // with the length before it
#define LOG_STEP (1 << 20)  // the log's file grows by so many zeros: what has its space syncs faster

enum { OP_CREATE = 1, OP_DELETE = 2, OP_EXISTS = 3, OP_GET = 4, OP_SET = 5, OP_CHILDREN = 8,
       OP_PING = 11, OP_CLOSE = -11 };
enum { ERROR_UNIMPLEMENTED = -6, ERROR_NO_NODE = -101, ERROR_NODE_EXISTS = -110 };

typedef struct {
  char *bytes;
  size_t size, max;
} buffer;

typedef struct node {
  struct node *next;   // in its bucket
  struct node *parent;
  struct node *older, *younger, *youngest;  // siblings, and its own last child
  uint64_t hash;
  uint32_t path_size, name_at;
  int children, is_listed;
  char *path;
  buffer answer;  // of a get: the data with its length, then the stat
  buffer list;    // of a list of children, while `is_listed`
} node;

typedef struct client {
  int fd;
  int is_greeted, wants_write;
  buffer in, out;
  // Replies behind writes: of the batch that is being synced, and of the next one.
  buffer syncing, gathering;
  struct client *next_syncing, *next_gathering;
  int is_gone;
} client;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void reserve(buffer *b, size_t more) {
  if (b->size + more <= b->max) return;
  b->max = 2 * (b->size + more);
  b->bytes = realloc(b->bytes, b->max);
  if (!b->bytes) die("memory");
}

static char *extend(buffer *b, size_t more) {
  reserve(b, more);
  b->size += more;
  return b->bytes + b->size - more;
}

static void append(buffer *b, const void *bytes, size_t size) { memcpy(extend(b, size), bytes, size); }

static void swap(buffer *a, buffer *b) {
  buffer kept = *a;
  *a = *b;
  *b = kept;
}

static uint32_t get32(const char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return ntohl(v);
}

static void put32(char *p, uint32_t v) {
  v = htonl(v);
  memcpy(p, &v, 4);
}

static void put64(char *p, uint64_t v) {
  put32(p, v >> 32);
  put32(p + 4, v);
}

// ---- The nodes.

static node **buckets;
static size_t bucket_count = 1 << 16, node_count = 0;
static uint64_t zxid = 0;

static uint64_t hash_of(const char *path, size_t size) {
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)path[i]) * 1099511628211u;
  return h;
}

static node **find(const char *path, size_t size, uint64_t hash) {
  node **at = &buckets[hash & (bucket_count - 1)];
  while (*at && ((*at)->hash != hash || (*at)->path_size != size ||
                 memcmp((*at)->path, path, size)))
    at = &(*at)->next;
  return at;
}

static node *lookup(const char *path, size_t size) { return *find(path, size, hash_of(path, size)); }

static void grow_table(void) {
  size_t before = bucket_count;
  node **old = buckets;
  bucket_count *= 4;
  buckets = calloc(bucket_count, sizeof *buckets);
  if (!buckets) die("memory");
  for (size_t i = 0; i < before; i++)
    for (node *n = old[i], *next; n; n = next) {
      next = n->next;
      node **at = &buckets[n->hash & (bucket_count - 1)];
      n->next = *at;
      *at = n;
    }
  free(old);
}

static char *stat_of(node *n) { return n->answer.bytes + n->answer.size - STAT_SIZE; }

// The stat: czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, data length, number of
// children, pzxid.
static void set_answer(node *n, const char *data, uint32_t size, int is_new, uint64_t now_ms) {
  char stat[STAT_SIZE] = {0};
  if (is_new) {
    put64(stat, zxid);
    put64(stat + 16, now_ms);
    put64(stat + 60, zxid);
  } else {
    memcpy(stat, stat_of(n), STAT_SIZE);
    put32(stat + 32, get32(stat + 32) + 1);
  }
  put64(stat + 8, zxid);
  put64(stat + 24, now_ms);
  put32(stat + 52, size);
  n->answer.size = 0;
  char *to = extend(&n->answer, 4 + size + STAT_SIZE);
  put32(to, size);
  memcpy(to + 4, data, size);
  memcpy(to + 4 + size, stat, STAT_SIZE);
}

static void changed_children(node *parent) {
  parent->is_listed = 0;
  char *stat = stat_of(parent);
  put32(stat + 36, get32(stat + 36) + 1);
  put32(stat + 56, parent->children);
  put64(stat + 60, zxid);
}

static node *add(const char *path, uint32_t size, const char *data, uint32_t data_size,
                 uint64_t now_ms) {
  node *n = calloc(1, sizeof *n);
  if (!n) die("memory");
  n->hash = hash_of(path, size);
  n->path_size = size;
  n->path = malloc(size);
  if (!n->path) die("memory");
  memcpy(n->path, path, size);
  uint32_t cut = size;
  while (cut && path[cut - 1] != '/') cut--;
  n->name_at = cut;
  if (++node_count > 2 * bucket_count) grow_table();
  node **at = &buckets[n->hash & (bucket_count - 1)];
  n->next = *at;
  *at = n;
  set_answer(n, data, data_size, 1, now_ms);
  n->parent = size > 1 ? lookup(path, cut > 1 ? cut - 1 : 1) : NULL;
  if (n->parent) {
    n->older = n->parent->youngest;
    if (n->older) n->older->younger = n;
    n->parent->youngest = n;
    n->parent->children++;
    changed_children(n->parent);
  }
  return n;
}

static void drop(node *n) {
  node **at = find(n->path, n->path_size, n->hash);
  *at = n->next;
  node_count--;
  if (n->older) n->older->younger = n->younger;
  if (n->younger) n->younger->older = n->older;
  if (n->parent) {
    if (n->parent->youngest == n) n->parent->youngest = n->older;
    n->parent->children--;
    changed_children(n->parent);
  }
  free(n->path);
  free(n->answer.bytes);
  free(n->list.bytes);
  free(n);
}

static buffer *list_of(node *n) {
  if (!n->is_listed) {
    n->list.size = 0;
    put32(extend(&n->list, 4), n->children);
    for (node *child = n->youngest; child; child = child->older) {
      uint32_t size = child->path_size - child->name_at;
      char *to = extend(&n->list, 4 + size);
      put32(to, size);
      memcpy(to + 4, child->path + child->name_at, size);
    }
    n->is_listed = 1;
  }
  return &n->list;
}

// ---- The log: one batch is being synced, and the next one gathers.

static int poller, log_file, synced_event;
static buffer log_gathering, log_syncing;
static client *gatherers, *syncers;
static int is_syncing = 0;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;

__attribute__((noreturn)) static void *sync_log(void *unused) {
  (void)unused;
  static char zeros[LOG_STEP];
  long offset = 0, allocated = 0;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!log_syncing.size) pthread_cond_wait(&has_work, &lock);
    pthread_mutex_unlock(&lock);
    while (offset + (long)log_syncing.size > allocated) {
      if (pwrite(log_file, zeros, LOG_STEP, allocated) != LOG_STEP) die("log");
      allocated += LOG_STEP;
    }
    if (pwrite(log_file, log_syncing.bytes, log_syncing.size, offset) != (ssize_t)log_syncing.size)
      die("log");
    if (fdatasync(log_file)) die("sync");
    offset += log_syncing.size;
    pthread_mutex_lock(&lock);
    log_syncing.size = 0;
    pthread_mutex_unlock(&lock);
    uint64_t one = 1;
    if (write(synced_event, &one, 8) != 8) die("event");
  }
}

static void begin_sync(void) {
  if (is_syncing || !log_gathering.size) return;
  is_syncing = 1;
  for (client *c = gatherers; c; c = c->next_gathering) {
    swap(&c->syncing, &c->gathering);
    c->next_syncing = c->next_gathering;
  }
  syncers = gatherers;
  gatherers = NULL;
  pthread_mutex_lock(&lock);
  swap(&log_syncing, &log_gathering);
  pthread_cond_signal(&has_work);
  pthread_mutex_unlock(&lock);
}

// ---- The clients.

static void send_out(client *c) {
  size_t sent = 0;
  while (sent < c->out.size) {
    ssize_t n = write(c->fd, c->out.bytes + sent, c->out.size - sent);
    if (n < 0 && errno != EAGAIN) c->out.size = sent;  // the next read tells
    if (n < 0) break;
    sent += n;
  }
  memmove(c->out.bytes, c->out.bytes + sent, c->out.size - sent);
  c->out.size -= sent;
  int wants_write = c->out.size > 0;
  if (wants_write != c->wants_write) {
    c->wants_write = wants_write;
    struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
  }
}

static void free_client(client *c) {
  buffer *all[] = {&c->in, &c->out, &c->syncing, &c->gathering};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->bytes);
  free(c);
}

static void end_sync(void) {
  is_syncing = 0;
  client *next;
  for (client *c = syncers; c; c = next) {
    next = c->next_syncing;
    if (!c->is_gone) {
      append(&c->out, c->syncing.bytes, c->syncing.size);
      send_out(c);
    } else if (!c->gathering.size) {
      free_client(c);
      continue;
    }
    c->syncing.size = 0;
  }
  syncers = NULL;
}

static void hang_up(client *c) {
  close(c->fd);
  c->is_gone = 1;
  if (!c->syncing.size && !c->gathering.size) free_client(c);
}

// Where the next reply of a client goes: behind what it waits for.
static buffer *place_of(client *c) {
  return c->gathering.size ? &c->gathering : c->syncing.size ? &c->syncing : &c->out;
}

static void reply(buffer *to, uint32_t xid, int error, const void *body, size_t size) {
  char *at = extend(to, REPLY_HEADER + size);
  put32(at, REPLY_HEADER - 4 + size);
  put32(at + 4, xid);
  put64(at + 8, zxid);
  put32(at + 16, error);
  if (size) memcpy(at + REPLY_HEADER, body, size);
}

static void change(client *c, const char *frame, uint32_t size, uint64_t now_ms) {
  uint32_t xid = get32(frame), op = get32(frame + 4), path_size = get32(frame + 8);
  const char *path = frame + 12, *data = path + path_size + 4;
  node *n = lookup(path, path_size);
  append(&log_gathering, frame, size);
  if (!c->gathering.size) {
    c->next_gathering = gatherers;
    gatherers = c;
  }
  buffer *to = &c->gathering;
  zxid++;
  if (op == OP_CREATE && n) {
    reply(to, xid, ERROR_NODE_EXISTS, NULL, 0);
  } else if (op == OP_CREATE) {
    add(path, path_size, data, get32(data - 4), now_ms);
    reply(to, xid, 0, path - 4, path_size + 4);
  } else if (!n) {
    reply(to, xid, ERROR_NO_NODE, NULL, 0);
  } else if (op == OP_SET) {
    set_answer(n, data, get32(data - 4), 0, now_ms);
    reply(to, xid, 0, stat_of(n), STAT_SIZE);
  } else {
    drop(n);
    reply(to, xid, 0, NULL, 0);
  }
}

// Answers a request; returns whether the client goes on.
static int request(client *c, const char *frame, uint32_t size, uint64_t now_ms) {
  uint32_t xid = get32(frame);
  int op = (int)get32(frame + 4);
  if (op == OP_CREATE || op == OP_DELETE || op == OP_SET) {
    change(c, frame, size, now_ms);
    return 1;
  }
  buffer *to = place_of(c);
  if (op == OP_GET || op == OP_EXISTS || op == OP_CHILDREN) {
    node *n = lookup(frame + 12, get32(frame + 8));
    if (!n) {
      reply(to, xid, ERROR_NO_NODE, NULL, 0);
    } else if (op == OP_CHILDREN) {
      const buffer *list = list_of(n);
      reply(to, xid, 0, list->bytes, list->size);
    } else if (op == OP_EXISTS) {
      reply(to, xid, 0, stat_of(n), STAT_SIZE);
    } else {
      reply(to, xid, 0, n->answer.bytes, n->answer.size);
    }
    return 1;
  }
  reply(to, xid, op == OP_PING || op == OP_CLOSE ? 0 : ERROR_UNIMPLEMENTED, NULL, 0);
  return op != OP_CLOSE;
}

static void greet(client *c, const char *frame) {
  static uint64_t last_session = 0;
  char *at = extend(&c->out, 40);
  memset(at, 0, 40);
  put32(at, 36);
  put32(at + 8, get32(frame + 12));
  put64(at + 12, ++last_session);
  put32(at + 20, 16);
  c->is_greeted = 1;
}

static void receive(client *c) {
  reserve(&c->in, READ_MAX);
  ssize_t n = read(c->fd, c->in.bytes + c->in.size, READ_MAX);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) {
    hang_up(c);
    return;
  }
  c->in.size += n;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME_COARSE, &t);
  uint64_t now_ms = t.tv_sec * 1000ull + t.tv_nsec / 1000000;
  size_t at = 0;
  int goes_on = 1;
  while (goes_on && c->in.size - at >= 4) {
    uint32_t size = get32(c->in.bytes + at);
    if (c->in.size - at - 4 < size) break;
    const char *frame = c->in.bytes + at + 4;
    if (c->is_greeted)
      goes_on = request(c, frame, size, now_ms);
    else
      greet(c, frame);
    at += 4 + size;
  }
  memmove(c->in.bytes, c->in.bytes + at, c->in.size - at);
  c->in.size -= at;
  if (c->out.size) send_out(c);
  if (!goes_on) hang_up(c);
}

static void accept_one(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
  if (fd < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  client *c = calloc(1, sizeof *c);
  if (!c) die("memory");
  c->fd = fd;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event)) die("epoll");
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: limit PORT FILE\n");
    return 64;
  }
  signal(SIGPIPE, SIG_IGN);  // the next read of a client that is gone tells
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  buckets = calloc(bucket_count, sizeof *buckets);
  log_file = open(arguments[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (log_file < 0) die(arguments[2]);
  add("/", 1, "", 0, 0);

  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1024)) die("listen");
  poller = epoll_create1(0);
  synced_event = eventfd(0, EFD_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
  event.data.ptr = &synced_event;
  epoll_ctl(poller, EPOLL_CTL_ADD, synced_event, &event);
  pthread_t syncer;
  if (pthread_create(&syncer, NULL, sync_log, NULL)) die("thread");

  for (;;) {
    struct epoll_event ready[READY_MAX];
    int n = epoll_wait(poller, ready, READY_MAX, -1);
    if (n < 0 && errno != EINTR) die("epoll");
    for (int i = 0; i < n; i++) {
      void *what = ready[i].data.ptr;
      if (what == &listener) {
        accept_one(listener);
      } else if (what == &synced_event) {
        uint64_t times;
        if (read(synced_event, &times, 8) == 8) end_sync();
      } else {
        if (ready[i].events & EPOLLOUT) send_out(what);
        if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(what);
      }
    }
    begin_sync();
  }
}
