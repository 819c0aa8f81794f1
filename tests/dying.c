/* LD_PRELOAD: ends the process at its n-th call that makes something in a folder durable, gone or renamed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char inside[4096];
static long at, done;

void die_at(long n, const char *folder) { snprintf(inside, sizeof inside, "%s", folder); at = n; done = 0; }
long died_of(void) { return done; }

static void step(const char *path) {
  if (!inside[0] || !path || !strstr(path, inside)) return;
  if (__sync_add_and_fetch(&done, 1) == at) kill(getpid(), SIGKILL);
}
static void step_fd(int fd) {
  char link[64], path[4096];
  ssize_t n;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink(link, path, sizeof path - 1);
  if (n > 0) { path[n] = 0; step(path); }
}
#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
int unlink(const char *p) { REAL(unlink); step(p); return real(p); }
int unlinkat(int d, const char *p, int f) { REAL(unlinkat); step(p); return real(d, p, f); }
int rename(const char *a, const char *b) { REAL(rename); step(b); return real(a, b); }
int renameat(int d, const char *a, int e, const char *b) { REAL(renameat); step(b); return real(d, a, e, b); }
int link(const char *a, const char *b) { REAL(link); step(b); return real(a, b); }
int linkat(int d, const char *a, int e, const char *b, int f) { REAL(linkat); step(b); return real(d, a, e, b, f); }
int fsync(int fd) { REAL(fsync); step_fd(fd); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); step_fd(fd); return real(fd); }
int ftruncate(int fd, off_t n) { REAL(ftruncate); step_fd(fd); return real(fd, n); }
int ftruncate64(int fd, off64_t n) { REAL(ftruncate64); step_fd(fd); return real(fd, n); }
