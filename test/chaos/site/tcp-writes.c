// Preloaded into a program: appends a line to a file for each write to a TCP socket, with the time of its end in
// nanoseconds (CLOCK_MONOTONIC) and its length. See send-width.ts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static int notes = -1;

__attribute__((constructor)) static void start(void) {
  real_write = dlsym(RTLD_NEXT, "write");
  const char *file = getenv("LATCHKEY_TEST_TCP_WRITES");
  if (file != NULL) notes = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static ssize_t note(int file, ssize_t written) {
  if (written <= 0 || notes == -1) return written;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int error = errno;
  int family = 0;
  socklen_t length = sizeof family;
  if (getsockopt(file, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && (family == AF_INET || family == AF_INET6)) {
    char line[64];
    int size = snprintf(line, sizeof line, "%lld%09ld %zd\n", (long long)now.tv_sec, now.tv_nsec, written);
    real_write(notes, line, size);
  }
  errno = error;
  return written;
}

ssize_t write(int file, const void *data, size_t size) {
  return note(file, real_write(file, data, size));
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  ssize_t (*real)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
  return note(file, real(file, parts, count));
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
  ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
  return note(file, real(file, message, flags));
}
