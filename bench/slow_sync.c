/* LD_PRELOAD: every fdatasync and fsync takes SLOW_SYNC_US microseconds longer, as on a slower disk.
 *
 * So does every flush that is asked of the kernel by libc's syscall(SYS_io_submit, …) with one iocb:
 * the call returns at once, and a thread submits it later. The caller's iocb must stay as it is until
 * its flush has landed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

struct flush { long context; struct iocb *iocb; };

static void dawdle(void) {
    const char *delay = getenv("SLOW_SYNC_US");
    long us = delay ? atol(delay) : 0;
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

int fdatasync(int fd) {
    dawdle();
    return REAL(fdatasync)(fd);
}

int fsync(int fd) {
    dawdle();
    return REAL(fsync)(fd);
}

static void *submit_late(void *given) {
    struct flush *flush = given;
    dawdle();
    if (REAL(syscall)(SYS_io_submit, flush->context, 1L, &flush->iocb) != 1)
        perror("slow_sync: io_submit");
    free(flush);
    return NULL;
}

static int is_flush(const struct iocb *iocb) {
    return iocb->aio_lio_opcode == IOCB_CMD_FDSYNC || iocb->aio_lio_opcode == IOCB_CMD_FSYNC;
}

long syscall(long number, ...) {
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_io_submit && given[1] == 1 && is_flush(*(struct iocb **)given[2])) {
        pthread_t thread;
        struct flush *flush = malloc(sizeof *flush);
        *flush = (struct flush){given[0], *(struct iocb **)given[2]};
        if (pthread_create(&thread, NULL, submit_late, flush))
            abort();
        pthread_detach(thread);
        return 1;
    }
    return REAL(syscall)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
