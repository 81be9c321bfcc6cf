// Preloaded into a program: fsync and fdatasync first sleep, like a worn SD card. See slow-syncs.ts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// Reads the duration in ms at each call, so that it can be changed while the program runs.
static void wait_for_the_card(void) {
  const char *name = getenv("LATCHKEY_TEST_SYNC_DURATION");
  int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file == -1) return;
  char text[16] = {0};
  long ms = read(file, text, sizeof text - 1) > 0 ? atol(text) : 0;
  close(file);
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) == -1 && errno == EINTR);
}

static int sync_with(const char *name, int file) {
  wait_for_the_card();
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
}

int fsync(int file) { return sync_with("fsync", file); }
int fdatasync(int file) { return sync_with("fdatasync", file); }
