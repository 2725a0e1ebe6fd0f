// disk_writer: a thread that writes and syncs, and never needs the interpreter lock (GIL).
//
// A Python thread needs the GIL three times for each record: when it is woken, after the write and
// after the sync. Meanwhile the event loop has it, which runs compiled code, and releases it for
// moments only. The rules of this one:
//
// * One write is under way at a time. `write` begins it; `take` tells what became of it.
// * When it has ended, `fileno` becomes readable, and the event loop hears of it with its sockets.
// * The pieces that are written stay referenced, and thereby unchanged, until `take`.
// * `close` waits for the write under way. So does the end of the object.
// * After fork() a child has no such thread: there the object can only be dropped.
//
// disk_writer.pyi has the signatures. Where this is not compiled, the log has only its Python thread.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// How many pieces one write may have: a record has four.
#define PIECES_MAX 8

typedef struct {
  PyObject_HEAD
  pthread_t thread;
  pid_t process;  // where the thread runs
  int has_thread;
  int event;  // an eventfd: how many writes have ended since the last `take`
  pthread_mutex_t lock;
  pthread_cond_t changed;  // signalled when one of the next two has changed
  int is_writing, is_closing;  // under the lock
  // The write: the thread's, as long as `is_writing`; otherwise it belongs to those who have the GIL.
  int file;
  off_t offset;
  Py_ssize_t count;
  PyObject *pieces[PIECES_MAX];
  struct iovec rest[PIECES_MAX];  // what is still to be written
  int error;        // errno of what failed; 0 if nothing did
  double ended_at;
} DiskWriter;

// ---- The thread.

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int write_and_sync(DiskWriter *self) {
  struct iovec *first = self->rest, *end = first + self->count;
  while (first < end) {
    if (!first->iov_len) {
      first++;
      continue;
    }
    ssize_t written = pwritev(self->file, first, (int)(end - first), self->offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written ? errno : EIO;
    self->offset += written;
    for (; first < end && (size_t)written >= first->iov_len; first++)
      written -= (ssize_t)first->iov_len;
    if (first < end) {
      first->iov_base = (char *)first->iov_base + written;
      first->iov_len -= (size_t)written;
    }
  }
  while (fdatasync(self->file))
    if (errno != EINTR) return errno;
  return 0;
}

static void *run(void *argument) {
  DiskWriter *self = argument;
  pthread_mutex_lock(&self->lock);
  for (;;) {
    while (!self->is_writing && !self->is_closing) pthread_cond_wait(&self->changed, &self->lock);
    if (!self->is_writing) break;
    pthread_mutex_unlock(&self->lock);
    self->error = write_and_sync(self);
    self->ended_at = seconds();
    pthread_mutex_lock(&self->lock);
    self->is_writing = 0;
    pthread_cond_broadcast(&self->changed);
    uint64_t one = 1;
    // It cannot fail: the counter is at most 1 before.
    ssize_t told = write(self->event, &one, sizeof one);
    (void)told;
  }
  pthread_mutex_unlock(&self->lock);
  return NULL;
}

// Signals are for Python's main thread.
static int start_thread(DiskWriter *self) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&self->thread, NULL, run, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) pthread_setname_np(self->thread, "paddock-disk");
  return error;
}

// ---- What Python calls.

static int is_open(DiskWriter *self) {
  if (self->has_thread && self->process == getpid()) return 1;
  PyErr_SetString(PyExc_ValueError, "the disk writer is closed, or is another process's");
  return 0;
}

static void release_pieces(DiskWriter *self) {
  for (Py_ssize_t i = 0; i < self->count; i++) Py_CLEAR(self->pieces[i]);
  self->count = 0;
}

static void stop(DiskWriter *self) {
  if (self->has_thread && self->process == getpid()) {
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->lock);
    self->is_closing = 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    Py_END_ALLOW_THREADS
  }
  self->has_thread = 0;
  if (self->event >= 0) close(self->event);
  self->event = -1;
  release_pieces(self);
}

static PyObject *new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  static char *none[] = {NULL};
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "", none)) return NULL;
  DiskWriter *self = (DiskWriter *)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->process = getpid();
  pthread_mutex_init(&self->lock, NULL);
  pthread_cond_init(&self->changed, NULL);
  self->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int error = self->event < 0 ? errno : start_thread(self);
  if (error) {
    Py_DECREF(self);
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  self->has_thread = 1;
  return (PyObject *)self;
}

static void dealloc(DiskWriter *self) {
  stop(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *fileno_of(DiskWriter *self, PyObject *nothing) {
  (void)nothing;
  return is_open(self) ? PyLong_FromLong(self->event) : NULL;
}

static PyObject *begin_write(DiskWriter *self, PyObject *arguments) {
  int file;
  long long offset;
  PyObject *pieces;
  if (!PyArg_ParseTuple(arguments, "iLO!:write", &file, &offset, &PyList_Type, &pieces) ||
      !is_open(self))
    return NULL;
  Py_ssize_t count = PyList_GET_SIZE(pieces);
  if (self->count) {
    PyErr_SetString(PyExc_RuntimeError, "a write is under way");
    return NULL;
  }
  if (!count || count > PIECES_MAX) {
    PyErr_Format(PyExc_ValueError, "a write has 1 to %d pieces, not %zd", PIECES_MAX, count);
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (!PyBytes_Check(PyList_GET_ITEM(pieces, i))) {
      PyErr_SetString(PyExc_TypeError, "pieces are bytes");
      return NULL;
    }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *piece = Py_NewRef(PyList_GET_ITEM(pieces, i));
    self->pieces[i] = piece;
    self->rest[i].iov_base = PyBytes_AS_STRING(piece);
    self->rest[i].iov_len = (size_t)PyBytes_GET_SIZE(piece);
  }
  self->file = file;
  self->offset = offset;
  self->count = count;
  pthread_mutex_lock(&self->lock);
  self->is_writing = 1;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
  Py_RETURN_NONE;
}

static PyObject *wait_for_end(DiskWriter *self, PyObject *nothing) {
  (void)nothing;
  if (!is_open(self)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(&self->lock);
  while (self->is_writing) pthread_cond_wait(&self->changed, &self->lock);
  pthread_mutex_unlock(&self->lock);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject *take(DiskWriter *self, PyObject *nothing) {
  (void)nothing;
  if (!is_open(self)) return NULL;
  pthread_mutex_lock(&self->lock);
  int is_writing = self->is_writing;
  pthread_mutex_unlock(&self->lock);
  if (is_writing || !self->count) Py_RETURN_NONE;
  uint64_t ended;
  ssize_t heard = read(self->event, &ended, sizeof ended);
  (void)heard;
  release_pieces(self);
  if (self->error) {
    errno = self->error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  return PyFloat_FromDouble(seconds() - self->ended_at);
}

static PyObject *close_it(DiskWriter *self, PyObject *nothing) {
  (void)nothing;
  stop(self);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"fileno", (PyCFunction)fileno_of, METH_NOARGS, NULL},
    {"write", (PyCFunction)begin_write, METH_VARARGS, NULL},
    {"wait", (PyCFunction)wait_for_end, METH_NOARGS, NULL},
    {"take", (PyCFunction)take, METH_NOARGS, NULL},
    {"close", (PyCFunction)close_it, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "paddock.log.file.disk_writer.DiskWriter",
    .tp_doc = "A thread that writes and syncs, and never needs the interpreter lock.",
    .tp_basicsize = sizeof(DiskWriter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new,
    .tp_dealloc = (destructor)dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "disk_writer", .m_size = -1};

PyMODINIT_FUNC PyInit_disk_writer(void) {
  if (PyType_Ready(&type)) return NULL;
  PyObject *made = PyModule_Create(&module);
  if (made && PyModule_AddObjectRef(made, "DiskWriter", (PyObject *)&type)) Py_CLEAR(made);
  return made;
}
