/* LD_PRELOAD: sleep SLOW_SYNC_US microseconds before every fdatasync and fsync, as a slower disk would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slow(const char *name, int fd) {
    const char *delay = getenv("SLOW_SYNC_US");
    long us = delay ? atol(delay) : 0;
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fdatasync(int fd) { return slow("fdatasync", fd); }
int fsync(int fd) { return slow("fsync", fd); }
