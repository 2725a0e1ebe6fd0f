// zkload: a neutral load generator for any server that speaks ZooKeeper's protocol.
//
// One thread, epoll, requests encoded beforehand. Each of `-c` connections keeps a window of `-w`
// requests in flight. The order of the replies and their error codes are checked, so a server
// cannot be fast by being wrong. A bystander has a thread of its own.
//
// Build: gcc -O2 -pthread -o zkload zkload.c

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BUFFER (1 << 20)
#define DATA_SIZE_MAX 3000
#define PREPARE_WINDOW 500  // requests in flight while nodes are created or deleted around a run
#define CHILDREN 100        // of each node that op kids asks about
#define LAST_CHILD "/zkload/kids/child-0099"
#define OPENING 40          // session requests in flight; the listen backlog of a server may be 50
#define PING_EVERY 8.0      // seconds
#define PROBE_EVERY 0.001   // seconds from one request of a prober to the next
#define PROBED "/zkload/probed"
#define PROBED_SIZE 100
#define EXPIRES_MS 4000     // the shortest timeout that servers grant
#define EPHEMERALS_MAX 50000  // of one session

enum { OP_CREATE = 1, OP_DELETE = 2, OP_EXISTS = 3, OP_GET = 4, OP_SET = 5, OP_CHILDREN = 8,
       OP_PING = 11, OP_CLOSE = -11 };
enum { XID_EVENT = -1, XID_PING = -2 };
enum { ERROR_NODE_EXISTS = -110 };

typedef struct {
  int fd;
  int id;
  uint32_t xid;    // of the last request sent
  uint32_t acked;  // of the last reply; replies must come in order
  int inflight;
  long sequence;       // names the nodes that this connection creates
  int delete_is_next;  // op eph: the ephemeral node is there
  int wants_write;     // epoll tells us when the socket takes more
  long events;
  char *in;
  size_t in_size, in_max;
  char *out;
  size_t out_size, out_sent, out_max;
  double *sent_at;  // by xid, modulo the window
} connection;

// ---- A log-linear histogram of latencies in nanoseconds, 64 steps to each power of two.

typedef struct {
  long counts[64 * 64];
  double longest;
} histogram;

static void histogram_add(histogram *h, double seconds) {
  if (seconds > h->longest) h->longest = seconds;
  uint64_t v = seconds * 1e9;
  if (v < 64) {
    h->counts[v]++;
    return;
  }
  int e = 63 - __builtin_clzll(v);
  h->counts[(e - 5) * 64 + ((v >> (e - 6)) & 63)]++;
}

static double histogram_quantile(histogram *h, double q) {
  long total = 0, count = 0;
  for (int i = 0; i < 4096; i++) total += h->counts[i];
  for (int i = 0; i < 4096; i++) {
    count += h->counts[i];
    if (count >= q * total) {
      if (i < 64) return i * 1e-9;
      int e = i / 64 + 5;
      return (double)((64ull + (i & 63)) << (e - 6)) * 1e-9;
    }
  }
  return 0;
}

// The options.
static const char *host = "127.0.0.1";
static int port = 2181, connections = 10, window = 100, data_size = 100, server_pid = 0,
           rounds = 20, timeout_ms = 40000;
static long total_ops = 0, keys = 0;
static int clean_up = 0;
static double duration = 5, warmup = 1, beside = 0;
static const char *op = "get";

enum { GET, EXISTS, SET, CREATE, EPH, KIDS, MIX, PING, KINDS };
static const char *kind_names[KINDS] = {"get", "exists", "set",  "create",
                                        "eph", "kids",   "mix", "ping"};
static int kind = -1;

static int poller;
static connection *all;
static long ops = 0, errors = 0, issued = 0, events_seen = 0;
static int last_error = 0, measuring = 0, stopped = 0;
static histogram latencies;  // of the load
static char base[64];  // the nodes of this run are below it

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

// ---- Encoding. Every encoder writes a whole frame and returns its size.

static void put32(char *p, uint32_t v) {
  v = htonl(v);
  memcpy(p, &v, 4);
}

static uint32_t get32(const char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return ntohl(v);
}

static size_t put_string(char *b, size_t at, const char *s) {
  size_t n = strlen(s);
  put32(b + at, n);
  memcpy(b + at + 4, s, n);
  return at + 4 + n;
}

static size_t put_data(char *b, size_t at, int n) {
  put32(b + at, n);
  memset(b + at + 4, 'x', n);
  return at + 4 + n;
}

static size_t put_open_acl(char *b, size_t at) {
  put32(b + at, 1);
  put32(b + at + 4, 31);
  at = put_string(b, at + 8, "world");
  return put_string(b, at, "anyone");
}

static size_t finish(char *b, size_t size, int xid, int type) {
  put32(b, size - 4);
  put32(b + 4, xid);
  put32(b + 8, type);
  return size;
}

static size_t encode_read(char *b, int xid, int type, const char *path, int watch) {
  size_t at = put_string(b, 12, path);
  b[at++] = watch;
  return finish(b, at, xid, type);
}

static size_t encode_set(char *b, int xid, const char *path, int n) {
  size_t at = put_string(b, 12, path);
  at = put_data(b, at, n);
  put32(b + at, -1);
  return finish(b, at + 4, xid, OP_SET);
}

static size_t encode_create(char *b, int xid, const char *path, int n, int flags) {
  size_t at = put_string(b, 12, path);
  at = put_data(b, at, n);
  at = put_open_acl(b, at);
  put32(b + at, flags);
  return finish(b, at + 4, xid, OP_CREATE);
}

static size_t encode_delete(char *b, int xid, const char *path) {
  size_t at = put_string(b, 12, path);
  put32(b + at, -1);
  return finish(b, at + 4, xid, OP_DELETE);
}

static size_t encode_close(char *b, int xid) { return finish(b, 12, xid, OP_CLOSE); }

// ---- Blocking calls, for the preparation of a run.

static void read_all(int fd, char *b, size_t n) {
  for (size_t done = 0; done < n;) {
    ssize_t r = read(fd, b + done, n - done);
    if (r <= 0) die("read");
    done += r;
  }
}

static void write_all(int fd, const char *b, size_t n) {
  while (n) {
    ssize_t r = write(fd, b, n);
    if (r < 0) die("write");
    b += r;
    n -= r;
  }
}

// Ask for a session; `welcome` reads the answer.
static int knock(void) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, host, &a.sin_addr);
  if (connect(fd, (void *)&a, sizeof a)) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  char b[128] = {0};
  put32(b, 45);
  put32(b + 16, timeout_ms);
  put32(b + 28, 16);
  write_all(fd, b, 49);
  return fd;
}

static void welcome(int fd) {
  char b[128];
  read_all(fd, b, 4);
  read_all(fd, b, get32(b));
}

static int dial(void) {
  int fd = knock();
  welcome(fd);
  return fd;
}

static int read_reply(int fd) {
  char b[65536];
  for (;;) {
    read_all(fd, b, 4);
    uint32_t n = get32(b);
    if (n > sizeof b) {
      fprintf(stderr, "frame too big %u\n", n);
      exit(2);
    }
    read_all(fd, b, n);
    if ((int)get32(b) >= 0) return get32(b + 12);
  }
}

static int call(int fd, char *b, size_t n) {
  write_all(fd, b, n);
  return read_reply(fd);
}

// ---- Many nodes, created beforehand, with many requests in flight.

static char many[PREPARE_WINDOW * (DATA_SIZE_MAX + 512)];
static size_t many_size;
static int many_count;

static void finish_many(int fd) {
  write_all(fd, many, many_size);
  for (; many_count; many_count--) {
    int error = read_reply(fd);
    if (error && error != ERROR_NODE_EXISTS) {
      fprintf(stderr, "error %d while nodes are made or deleted\n", error);
      exit(2);
    }
  }
  many_size = 0;
}

static void create_one_of_many(int fd, const char *path, int n, int flags) {
  many_size += encode_create(many + many_size, 7, path, n, flags);
  if (++many_count == PREPARE_WINDOW) finish_many(fd);
}

static void delete_one_of_many(int fd, const char *path) {
  many_size += encode_delete(many + many_size, 7, path);
  if (++many_count == PREPARE_WINDOW) finish_many(fd);
}

static void key_path(char *path, long key) { sprintf(path, "/zkload/spread/%08ld", key); }

static void parent_path(char *path, long key) { sprintf(path, "/zkload/family/%08ld", key); }

static int exists(int fd, const char *path) {
  char b[256];
  return call(fd, b, encode_read(b, 6, OP_EXISTS, path, 0)) == 0;
}

// Create the nodes of `-k`, unless an earlier run on this server has done it; earlier runs may have
// asked for fewer.
static void setup_keys(int fd) {
  char b[512], path[128];
  call(fd, b, encode_create(b, 5, "/zkload/spread", 0, 0));
  long made = keys;
  do {
    made = made > PREPARE_WINDOW ? made / 2 : 0;
    key_path(path, made);
  } while (made && !exists(fd, path));
  key_path(path, keys - 1);
  if (exists(fd, path)) return;
  for (; made < keys; made++) {
    key_path(path, made);
    create_one_of_many(fd, path, data_size, 0);
  }
  finish_many(fd);
}

// The same for op kids: as many nodes, each of which is one of the children of a parent.
static void setup_families(int fd) {
  char b[512], path[160];
  call(fd, b, encode_create(b, 5, "/zkload/family", 0, 0));
  parent_path(path, keys / CHILDREN - 1);
  sprintf(path + strlen(path), "/child-%04d", CHILDREN - 1);
  if (exists(fd, path)) return;
  for (long parent = 0; parent < keys / CHILDREN; parent++) {
    parent_path(path, parent);
    create_one_of_many(fd, path, 0, 0);
    size_t end = strlen(path);
    for (int i = 0; i < CHILDREN; i++) {
      sprintf(path + end, "/child-%04d", i);
      create_one_of_many(fd, path, 0, 0);
    }
  }
  finish_many(fd);
}

static void setup(void) {
  int fd = dial();
  char b[8192], path[128];
  call(fd, b, encode_create(b, 1, "/zkload", 0, 0));
  call(fd, b, encode_create(b, 2, "/zkload/d", data_size, 0));
  call(fd, b, encode_create(b, 2, "/zkload/kids", 0, 0));
  call(fd, b, encode_create(b, 2, PROBED, PROBED_SIZE, 0));
  call(fd, b, encode_set(b, 2, "/zkload/d", data_size));
  for (int i = exists(fd, LAST_CHILD) ? CHILDREN : 0; i < CHILDREN; i++) {
    sprintf(path, "/zkload/kids/child-%04d", i);
    create_one_of_many(fd, path, 0, 0);
  }
  finish_many(fd);
  snprintf(base, sizeof base, "/zkload/r%d-%ld", getpid(), (long)time(0));
  call(fd, b, encode_create(b, 4, base, 0, 0));
  if (keys && kind == KIDS)
    setup_families(fd);
  else if (keys)
    setup_keys(fd);
  write_all(fd, b, encode_close(b, 9));
  close(fd);
}

// ---- The load.

static char get_frame[512], set_frame[4096], kids_frame[512];
static size_t get_size, set_size, kids_size;

static void prepare_frames(void) {
  char path[128] = "/zkload/d";
  if (keys) key_path(path, 0);
  get_size = encode_read(get_frame, 0, kind == EXISTS ? OP_EXISTS : OP_GET, path, 0);
  set_size = encode_set(set_frame, 0, path, data_size);
  strcpy(path, "/zkload/kids");
  if (keys) parent_path(path, 0);
  kids_size = encode_read(kids_frame, 0, OP_CHILDREN, path, 0);
}

static uint32_t random_state = 12345;

static uint32_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state;
}

// A prepared frame; with `-k` its path gets the digits of a key drawn at random: spread and family
// are words of the same length.
static size_t copy_frame(char *b, const char *frame, size_t n) {
  memcpy(b, frame, n);
  if (keys) {
    long key = next_random() % (kind == KIDS ? keys / CHILDREN : keys);
    char *digit = b + 16 + strlen("/zkload/spread/") + 8;
    for (int i = 0; i < 8; i++, key /= 10) *--digit = '0' + key % 10;
  }
  return n;
}

static size_t generate(connection *c, char *b) {
  uint32_t xid = ++c->xid;
  size_t n;
  char path[128];
  switch (kind) {
    case MIX:
      if (next_random() % 10 == 0) {
        n = copy_frame(b, set_frame, set_size);
        break;
      }
      // fallthrough
    case GET:
    case EXISTS:
      n = copy_frame(b, get_frame, get_size);
      break;
    case SET:
      n = copy_frame(b, set_frame, set_size);
      break;
    case KIDS:
      n = copy_frame(b, kids_frame, kids_size);
      break;
    case PING:
      n = finish(b, 12, xid, OP_PING);
      break;
    case CREATE:
      sprintf(path, "%s/n%04d-%08ld", base, c->id, c->sequence++);
      n = encode_create(b, xid, path, data_size, 0);
      break;
    default:
      sprintf(path, "%s/e%04d-%08ld", base, c->id, c->sequence);
      if (!c->delete_is_next) {
        n = encode_create(b, xid, path, data_size, 1);
      } else {
        c->sequence++;
        n = encode_delete(b, xid, path);
      }
      c->delete_is_next = !c->delete_is_next;
  }
  put32(b + 4, xid);
  return n;
}

static void listen_for(connection *c, int writing) {
  c->wants_write = writing;
  struct epoll_event e = {.events = writing ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e);
}

static void flush(connection *c) {
  while (c->out_sent < c->out_size) {
    ssize_t r = write(c->fd, c->out + c->out_sent, c->out_size - c->out_sent);
    if (r < 0) {
      if (errno != EAGAIN) die("write");
      if (!c->wants_write) listen_for(c, 1);
      return;
    }
    c->out_sent += r;
  }
  c->out_sent = c->out_size = 0;
  if (c->wants_write) listen_for(c, 0);
}

static void fill(connection *c) {
  double t = now();
  while (!stopped && c->inflight < window && (!total_ops || issued < total_ops)) {
    if (c->out_size + data_size + 512 > c->out_max) break;
    c->out_size += generate(c, c->out + c->out_size);
    c->sent_at[c->xid % (window + 1)] = t;
    c->inflight++;
    issued++;
  }
  if (c->out_size) flush(c);
}

static void on_frame(connection *c, const char *frame, double t) {
  int xid = get32(frame);
  if (xid == XID_EVENT) {
    if (!c->events++) events_seen++;
    return;
  }
  if (xid == XID_PING) return;
  if ((uint32_t)xid != ++c->acked) {
    fprintf(stderr, "xid order: got %d want %u\n", xid, c->acked);
    exit(3);
  }
  int error = get32(frame + 12);
  if (error && kind != PING) {
    errors++;
    last_error = error;
  }
  if (measuring) {
    histogram_add(&latencies, t - c->sent_at[xid % (window + 1)]);
    ops++;
  }
  c->inflight--;
}

static void on_readable(connection *c) {
  for (;;) {
    ssize_t r = read(c->fd, c->in + c->in_size, c->in_max - c->in_size);
    if (r < 0) {
      if (errno == EAGAIN) return;
      die("read");
    }
    if (r == 0) {
      fprintf(stderr, "conn %d closed by server\n", c->id);
      exit(2);
    }
    c->in_size += r;
    size_t at = 0;
    double t = now();
    while (c->in_size - at >= 4) {
      uint32_t n = get32(c->in + at);
      if (n > c->in_max - 4) {
        fprintf(stderr, "frame too big %u\n", n);
        exit(2);
      }
      if (c->in_size - at < 4 + n) break;
      on_frame(c, c->in + at + 4, t);
      at += 4 + n;
    }
    memmove(c->in, c->in + at, c->in_size - at);
    c->in_size -= at;
    if (r < 65536) return;
  }
}

static void turn(int wait_ms) {
  struct epoll_event events[256];
  int n = epoll_wait(poller, events, 256, wait_ms);
  for (int i = 0; i < n; i++) {
    connection *c = events[i].data.ptr;
    if (events[i].events & EPOLLOUT) flush(c);
    if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
    fill(c);
  }
}

static int in_flight(void) {
  int left = 0;
  for (int i = 0; i < connections; i++) left += all[i].inflight;
  return left;
}

// ---- Resources that the server uses, from the operating system.

static double cpu_seconds(int pid) {
  char name[64], b[1024];
  sprintf(name, "/proc/%d/stat", pid);
  FILE *f = fopen(name, "r");
  if (!f) return 0;
  size_t n = fread(b, 1, sizeof b - 1, f);
  b[n] = 0;
  fclose(f);
  long user = 0, system = 0;
  char *after_name = strrchr(b, ')');
  if (!after_name) return 0;
  sscanf(after_name + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
  return (user + system) / (double)sysconf(_SC_CLK_TCK);
}

static long rss_kib(int pid) {
  char name[64], line[256];
  sprintf(name, "/proc/%d/status", pid);
  FILE *f = fopen(name, "r");
  long kib = 0;
  if (!f) return 0;
  while (fgets(line, sizeof line, f))
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  fclose(f);
  return kib;
}

static double own_cpu_seconds(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

// Delete the nodes of op create, so that the next run finds the same state.
static void delete_created(void) {
  int fd = dial();
  char b[256], path[128];
  for (int i = 0; i < connections; i++)
    for (long n = 0; n < all[i].sequence; n++) {
      sprintf(path, "%s/n%04d-%08ld", base, all[i].id, n);
      delete_one_of_many(fd, path);
    }
  finish_many(fd);
  call(fd, b, encode_delete(b, 1, base));
  write_all(fd, b, encode_close(b, 2));
  close(fd);
}

// ---- Kinds of runs.

static void ping_first(int count) {
  char b[12];
  for (int i = 0; i < count; i++)
    if (write(all[i].fd, b, finish(b, 12, XID_PING, OP_PING)) != 12) die("ping");
}

static void run_idle(double opened_in, long before_kib) {
  long opened_kib = rss_kib(server_pid), settled_kib = 0;
  stopped = 1;
  double began = now(), last_ping = began, cpu = cpu_seconds(server_pid);
  while (now() - began < duration) {
    // The first pings are over in half of the time.
    if (now() - last_ping > (settled_kib || duration / 4 > PING_EVERY ? PING_EVERY : duration / 4)) {
      last_ping = now();
      ping_first(connections);
    }
    if (!settled_kib && now() - began > (duration / 2 < 20 ? duration / 2 : 20))
      settled_kib = rss_kib(server_pid);
    turn(200);
  }
  printf("idle: %d sessions opened in %.2f s  server rss before %ld KiB  opened %ld KiB  "
         "settled %ld KiB  after %.0f s %ld KiB  cpu %.1f%%\n",
         connections, opened_in, before_kib, opened_kib, settled_kib, duration,
         rss_kib(server_pid), 100 * (cpu_seconds(server_pid) - cpu) / duration);
}

// ---- A prober: one request at a time, a read and a write in turn, each soon after the last.

enum { READS, WRITES };

typedef struct {
  int fd, xid;
  int reads_only;
  double next;
  histogram waits[2];
} prober;

static void probe(prober *p) {
  char b[PROBED_SIZE + 512];
  double t = now();
  if (t < p->next) {
    usleep((p->next - t) * 1e6);
    t = now();
  }
  int what = ++p->xid % 2 && !p->reads_only ? WRITES : READS;
  size_t n = what == WRITES ? encode_set(b, p->xid, PROBED, PROBED_SIZE)
                            : encode_read(b, p->xid, OP_GET, PROBED, 0);
  int error = call(p->fd, b, n);
  double took = now() - t;
  if (error) {
    fprintf(stderr, "error %d for a prober\n", error);
    exit(2);
  }
  histogram_add(&p->waits[what], took);
  p->next = t + PROBE_EVERY;
}

static void show_waits(const char *who, prober *p) {
  printf("%s: %d requests", who, p->xid);
  static const char *names[] = {"get", "set"};
  for (int i = READS; i <= (p->reads_only ? READS : WRITES); i++)
    printf("  %s p50 %.0f us p999 %.0f us longest %.0f us", names[i],
           histogram_quantile(&p->waits[i], .5) * 1e6, histogram_quantile(&p->waits[i], .999) * 1e6,
           p->waits[i].longest * 1e6);
  printf("\n");
}

static void run_probe(void) {
  prober p = {.fd = dial()};
  for (double began = now(); now() - began < duration;) probe(&p);
  show_waits("probe", &p);
}

// ---- A bystander: a prober in a thread of its own, so that it does not wait for the load's.

typedef struct {
  prober p;
  pthread_t thread;
  atomic_int is_over;
} bystander;

static void *stand_by(void *given) {
  bystander *b = given;
  b->p.fd = dial();
  for (double began = now(); now() - began < beside;) probe(&b->p);
  b->is_over = 1;
  return NULL;
}

static void begin_bystander(bystander *b) {
  if (pthread_create(&b->thread, NULL, stand_by, b)) die("thread");
}

static void end_bystander(bystander *b) {
  pthread_join(b->thread, NULL);
  show_waits("bystander", &b->p);
}

// Sessions with `-n` ephemeral nodes in all expire while another client sends requests.
static void run_expire(void) {
  char path[128];
  int count = (total_ops + EPHEMERALS_MAX - 1) / EPHEMERALS_MAX, left = count;
  struct pollfd *silent = calloc(count, sizeof *silent);
  prober p = {.fd = dial()};
  timeout_ms = EXPIRES_MS;
  for (int i = 0; i < count; i++) silent[i] = (struct pollfd){.fd = dial(), .events = POLLIN};
  // In turn, so that none of them is silent before the last one is.
  for (long i = 0; i < total_ops; i++) {
    sprintf(path, "%s/%ld", base, i);
    create_one_of_many(silent[i / PREPARE_WINDOW % count].fd, path, 0, 1);
  }
  finish_many(silent[(total_ops - 1) / PREPARE_WINDOW % count].fd);
  double began = now(), ended = 0;
  // The server closes the connection of a session that has expired; nodes may be deleted later.
  while (!ended || now() - ended < duration) {
    probe(&p);
    if (ended || !poll(silent, count, 0)) continue;
    for (int i = 0; i < count; i++)
      if (silent[i].revents) {
        silent[i].fd = -1;
        left--;
      }
    if (!left) ended = now();
  }
  for (long i = 0; i < total_ops; i += PREPARE_WINDOW) {
    sprintf(path, "%s/%ld", base, i);
    if (exists(p.fd, path)) {
      fprintf(stderr, "an ephemeral node outlived its session\n");
      exit(2);
    }
  }
  show_waits("expire", &p);
  printf("%ld ephemerals of %d sessions were gone after %.1f s\n", total_ops, count,
         ended - began);
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(double *)a, y = *(double *)b;
  return x < y ? -1 : x > y;
}

static void run_watch(void) {
  stopped = 1;
  kind = GET;
  int setter = dial();
  char b[4096], reply[256];
  double *took = calloc(rounds, sizeof(double));
  bystander aside = {.is_over = !beside};
  if (beside) begin_bystander(&aside);
  for (int r = 0; r < rounds || !aside.is_over; r++) {
    events_seen = 0;
    for (int i = 0; i < connections; i++) {
      connection *c = all + i;
      c->events = 0;
      size_t n = encode_read(b, ++c->xid, OP_GET, "/zkload/d", 1);
      c->inflight++;
      if (write(c->fd, b, n) != (ssize_t)n) die("write");
    }
    while (in_flight()) turn(100);
    usleep(20000);
    double began = now();
    write_all(setter, b, encode_set(b, r + 1, "/zkload/d", data_size));
    while (events_seen < connections) turn(100);
    took[r % rounds] = now() - began;
    read_all(setter, reply, 4);
    read_all(setter, reply, get32(reply));
  }
  qsort(took, rounds, sizeof(double), compare_doubles);
  printf("watch: %d watchers, %d rounds: all-notified median %.2f ms min %.2f max %.2f  "
         "(%.0f notifications/s) rss %ld MiB\n",
         connections, rounds, took[rounds / 2] * 1e3, took[0] * 1e3, took[rounds - 1] * 1e3,
         connections / took[rounds / 2], rss_kib(server_pid) / 1024);
  if (beside) end_bystander(&aside);
}

static void run_load(void) {
  for (int i = 0; i < connections; i++) fill(all + i);
  double began = now();
  if (total_ops) {
    measuring = 1;
    warmup = 0;
  }
  while (now() - began < warmup) turn(100);
  measuring = 1;
  double own = own_cpu_seconds(), cpu = cpu_seconds(server_pid);
  began = now();
  if (total_ops)
    while (ops < total_ops) turn(100);
  else
    while (now() - began < duration) turn(100);
  double elapsed = now() - began;
  cpu = cpu_seconds(server_pid) - cpu;
  own = own_cpu_seconds() - own;
  measuring = 0;
  bystander aside = {.p = {.reads_only = 1}};
  if (beside) {
    begin_bystander(&aside);
    while (!aside.is_over) turn(100);
  }
  stopped = 1;
  printf("%-7s c=%-3d w=%-4d %9.0f ops/s  p50 %8.0f us  p99 %8.0f us  err %ld(%d)  srv_cpu "
         "%4.0f%%  %6.2f us/op  rss %ld MiB  cli_cpu %3.0f%%\n",
         op, connections, window, ops / elapsed, histogram_quantile(&latencies, .5) * 1e6,
         histogram_quantile(&latencies, .99) * 1e6, errors, last_error, 100 * cpu / elapsed,
         1e6 * cpu / ops, rss_kib(server_pid) / 1024, 100 * own / elapsed);
  if (beside) end_bystander(&aside);
  double drain = now();
  while (in_flight() && now() - drain < 10) turn(100);
  for (int i = 0; i < connections; i++) {
    char b[12];
    if (write(all[i].fd, b, encode_close(b, ++all[i].xid)) != 12) continue;
  }
  if (clean_up && kind == CREATE) delete_created();
  usleep(50000);
}

static void usage(void) {
  fprintf(
      stderr,
      "usage: zkload [-H host] [-p port] [-c conns=10] [-w window=100] [-t secs=5]\n"
      "              [-u warmup_secs=1] [-n total_ops] [-d datasize=100] [-k keys]\n"
      "              [-P serverpid] [-r rounds] [-b bystander_secs] [-D] OP\n"
      " OP: get exists set create eph(ephemeral create+delete pairs) kids(getChildren of 100)\n"
      "     mix(90%% get/10%% set) ping\n"
      "     watch: every conn sets a data watch on one node, time setData -> last notification\n"
      "            (-r rounds)\n"
      "     idle:  open -c sessions, ping every 8 s, hold -t secs, report server RSS (needs -P)\n"
      "     probe: one request at a time for -t secs, a get and a set in turn: how long they wait\n"
      "     expire: sessions with -n ephemerals expire: how long the requests of a prober wait\n"
      " -k: get, exists, set and mix draw from that many nodes, made beforehand, instead of one;\n"
      "     kids from as many parents as have that many children in all; create and eph find\n"
      "     the nodes there\n"
      " -b: the load goes on for so long after the measurement, or the watches, while a bystander\n"
      "     asks one get a millisecond, unless the last takes longer; beside watches also sets\n"
      " -D: delete what op create has made, after the measurement\n"
      " output: op conns window ops/s p50_us p99_us errors server_cpu%% server_us_per_op\n"
      "         server_rss_MiB client_cpu%%\n");
  exit(64);
}

// As many files as we may open: one for each connection.
static void allow_files(void) {
  struct rlimit files = {65536, 65536};
  if (setrlimit(RLIMIT_NOFILE, &files) == 0) return;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

static void parse_options(int count, char **values) {
  int o;
  while ((o = getopt(count, values, "H:p:c:w:t:u:n:d:k:P:r:b:Dh")) > 0) switch (o) {
      case 'H': host = optarg; break;
      case 'p': port = atoi(optarg); break;
      case 'c': connections = atoi(optarg); break;
      case 'w': window = atoi(optarg); break;
      case 't': duration = atof(optarg); break;
      case 'u': warmup = atof(optarg); break;
      case 'n': total_ops = atol(optarg); break;
      case 'd': data_size = atoi(optarg); break;
      case 'k': keys = atol(optarg); break;
      case 'P': server_pid = atoi(optarg); break;
      case 'b': beside = atof(optarg); break;
      case 'D': clean_up = 1; break;
      case 'r': rounds = atoi(optarg); break;
      default: usage();
    }
  if (optind >= count || connections < 1 || window < 1 || rounds < 1 || data_size < 0 ||
      data_size > DATA_SIZE_MAX || keys < 0 || keys > 99999999)
    usage();
  op = values[optind];
}

int main(int count, char **values) {
  parse_options(count, values);
  allow_files();
  for (int i = 0; i < KINDS; i++)
    if (!strcmp(op, kind_names[i])) kind = i;
  int watch = !strcmp(op, "watch"), idle = !strcmp(op, "idle"), expire = !strcmp(op, "expire"),
      probing = !strcmp(op, "probe");
  if (kind < 0 && !watch && !idle && !expire && !probing) usage();
  if (expire && !total_ops) usage();
  if (beside && (total_ops || (kind < 0 && !watch))) usage();
  if (keys && (kind < 0 || kind == PING)) usage();
  if (keys && kind == KIDS && keys < CHILDREN) usage();
  if (kind != PING) setup();
  if (probing || expire) {
    probing ? run_probe() : run_expire();
    return 0;
  }
  prepare_frames();

  poller = epoll_create1(0);
  all = calloc(connections, sizeof(connection));
  long before_kib = rss_kib(server_pid);
  // With many connections, each has a small buffer.
  size_t room = 65536 + (size_t)window * 4096;
  double began = now(), pinged = began;
  for (int i = 0; i < connections; i++) {
    connection *c = all + i;
    c->id = i;
    c->fd = knock();
    c->in_max = watch || idle ? 8192 : room < READ_BUFFER ? room : READ_BUFFER;
    c->in = malloc(c->in_max);
    c->out_max = watch || idle ? 4096 : room;
    c->out = malloc(c->out_max);
    c->sent_at = calloc(window + 1, sizeof(double));
    if (i % OPENING == OPENING - 1 || i == connections - 1) {
      for (int j = i / OPENING * OPENING; j <= i; j++) welcome(all[j].fd);
      // Otherwise the first of very many sessions would expire before the last one is open.
      if (now() - pinged > PING_EVERY) {
        ping_first(i + 1);
        pinged = now();
      }
    }
  }
  double opened_in = now() - began;
  for (int i = 0; i < connections; i++) {
    connection *c = all + i;
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &e);
  }
  if (idle)
    run_idle(opened_in, before_kib);
  else if (watch)
    run_watch();
  else
    run_load();
  return 0;
}
