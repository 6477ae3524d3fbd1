/* LD_PRELOAD: a disk that fails, and one that forgets at a power cut what was not synced.
 *
 * Only files under DISK_DIR count. It is told by variables:
 *
 * DISK_FAIL="call number errno"   The number-th call of that kind (write, sync, truncate, open) fails.
 *                                 A failing write leaves half of its bytes. With EDQUOT all calls
 *                                 after it fail as well.
 * DISK_FAIL_ON                    The file whose existence lets the counting begin, if it is set.
 * DISK_SYNC_MS                    How long each sync takes longer than it would.
 * DISK_HOLD                       A file: while it exists, no flush begins that is asked of the kernel,
 *                                 but one for each file of that name with the end ".once".
 * DISK_FORGETS                    The end of the names of files whose syncs do nothing, and say nothing.
 * DISK_AIO="call errno"           Each io_setup or io_submit fails ("setup", "submit").
 * DISK_BOOT                       A file that stands in for the machine's boot_id: each power cut
 *                                 writes another one.
 * DISK_REPORT                     A file that is told of the failure when it has happened.
 * DISK_SHADOW                     A directory that holds what a power cut would leave at worst:
 *                                 files/ what was synced of each file, names/ an empty file for each
 *                                 name that was synced with the directory, root once the directory's
 *                                 own name was.
 *
 * A sync is a call of fsync or fdatasync, or a flush that is asked of the kernel through libc's
 * syscall(): io_submit of IOCB_CMD_FSYNC or IOCB_CMD_FDSYNC. Such a flush covers what was written
 * before it was submitted, and counts once io_getevents has told of it: who answers without having
 * looked loses what was answered. The kernel does it, and writes the eventfd; where it is to fail,
 * its event says so. io_uring is refused, and so is any other asynchronous call on these files: they
 * would pass unseen. A descriptor that the kernel flushes must be readable.
 *
 * Memory-mapped files (SQLite's -shm) are not followed: a start makes them anew.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static long calls;

static const char *setting(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* The path below DISK_DIR: "" for the directory itself, ".." for its parent, NULL for all else. */
static const char *below(const char *path) {
    const char *root = setting("DISK_DIR");
    size_t length = root ? strlen(root) : 0;
    if (!length)
        return NULL;
    if (!strncmp(path, root, length) && (path[length] == '/' || !path[length]))
        return path[length] ? path + length + 1 : "";
    const char *last = strrchr(root, '/');
    return strlen(path) == (size_t)(last - root) && !strncmp(path, root, last - root) ? ".." : NULL;
}

static const char *name_of(int fd, char path[PATH_MAX]) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    path[length] = 0;
    return below(path);
}

/* Whether this call is the one that is to fail; errno is set then. */
static bool fails(const char *kind, const char *name) {
    char wanted[16];
    long number;
    int error;
    const char *order = setting("DISK_FAIL"), *on = setting("DISK_FAIL_ON");
    if (!name || !strcmp(name, "..") || !order)
        return false;
    if (sscanf(order, "%15s %ld %d", wanted, &number, &error) != 3 || strcmp(wanted, kind))
        return false;
    if (on && access(on, F_OK))
        return false;
    long turn = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    /* A quota that is used up stays so. */
    if (error == EDQUOT ? turn < number : turn != number)
        return false;
    int report = REAL(open)(setting("DISK_REPORT"), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dprintf(report, "%s %s\n", kind, name);
    REAL(close)(report);
    errno = error;
    return true;
}

static void dawdle(const char *name) {
    if (name && setting("DISK_SYNC_MS"))
        usleep(1000 * atol(setting("DISK_SYNC_MS")));
}

#include "disk_shadow.h"

#define SYNC(call)                                                                                 \
    int call(int fd) {                                                                             \
        char path[PATH_MAX];                                                                       \
        const char *name = name_of(fd, path);                                                      \
        dawdle(name);                                                                              \
        if (fails("sync", name))                                                                   \
            return -1;                                                                             \
        int result = REAL(call)(fd);                                                               \
        if (!result)                                                                               \
            synced(fd, name);                                                                \
        return result;                                                                             \
    }

#define PWRITE(call, offset_type)                                                                  \
    ssize_t call(int fd, const void *data, size_t size, offset_type start) {                       \
        char path[PATH_MAX];                                                                       \
        const char *name = name_of(fd, path);                                                      \
        bool broken = fails("write", name);                                                        \
        int error = errno;                                                                         \
        ssize_t done = REAL(call)(fd, data, broken ? size / 2 : size, start);                      \
        written(name, start, start + (done > 0 ? done : 0));                                       \
        errno = broken ? error : errno;                                                            \
        return broken ? -1 : done;                                                                 \
    }

#define TRUNCATE(call, offset_type)                                                                \
    int call(int fd, offset_type size) {                                                           \
        char path[PATH_MAX];                                                                       \
        return fails("truncate", name_of(fd, path)) ? -1 : REAL(call)(fd, size);                   \
    }

static const char *seen_as(const char *path) {
    const char *boot = setting("DISK_BOOT");
    return boot && !strcmp(path, "/proc/sys/kernel/random/boot_id") ? boot : path;
}

#define OPEN(call)                                                                                 \
    int call(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                    \
        va_end(rest);                                                                              \
        return fails("open", below(path)) ? -1 : REAL(call)(seen_as(path), flags, mode);           \
    }

SYNC(fsync)
SYNC(fdatasync)
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *data, size_t size) {
    char path[PATH_MAX];
    const char *name = setting("DISK_DIR") ? name_of(fd, path) : NULL;
    if (!name || !*name || !strcmp(name, ".."))
        return REAL(write)(fd, data, size);
    bool broken = fails("write", name);
    int error = errno;
    off_t start = lseek(fd, 0, SEEK_CUR);
    ssize_t done = REAL(write)(fd, data, broken ? size / 2 : size);
    written(name, start, start + (done > 0 ? done : 0));
    errno = broken ? error : errno;
    return broken ? -1 : done;
}

int rename(const char *from, const char *to) {
    int result = REAL(rename)(from, to);
    if (!result)
        renamed(below(from), below(to));
    return result;
}

#include "disk_aio.h"
