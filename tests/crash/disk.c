/* LD_PRELOAD: a disk that fails, and one that forgets at a power cut what was not synced.
 *
 * Only files under DISK_DIR count. It is told by variables:
 *
 * DISK_FAIL="call number errno"   The number-th call of that kind (write, sync, truncate, open) fails.
 *                                 A failing write leaves half of its bytes.
 * DISK_FAIL_ON                    The file whose existence lets the counting begin, if it is set.
 * DISK_SYNC_MS                    How long each sync takes longer than it would.
 * DISK_REPORT                     A file that is told of the failure when it has happened.
 * DISK_SHADOW                     A directory that holds what a power cut would leave at worst:
 *                                 files/ what was synced of each file, names/ an empty file for each
 *                                 name that was synced with the directory, root once the directory's
 *                                 own name was.
 *
 * Memory-mapped files (SQLite's -shm) are not followed: a start makes them anew.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
#define MOST_RANGES 4096

struct range { off_t start, end; };

/* What was written to one file since it was last synced. */
struct dirty { char name[64]; int count; struct range ranges[MOST_RANGES]; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dirty dirty[8];
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
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != number)
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

/* Paths in the shadow. */
static int shadow(const char *folder, const char *name, int flags) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", setting("DISK_SHADOW"), folder, name);
    return REAL(open)(path, flags | O_CREAT | O_CLOEXEC, 0644);
}

static bool is_followed(const char *name) {
    return name && *name && strcmp(name, "..") && !strstr(name, "-shm") && setting("DISK_SHADOW");
}

static struct dirty *record_of(const char *name) {
    for (size_t i = 0; i < sizeof dirty / sizeof *dirty; i++) {
        if (!*dirty[i].name)
            strncpy(dirty[i].name, name, sizeof dirty[i].name - 1);
        if (!strcmp(dirty[i].name, name))
            return &dirty[i];
    }
    abort();
}

static void written(const char *name, off_t start, off_t end) {
    if (!is_followed(name) || end <= start)
        return;
    pthread_mutex_lock(&lock);
    struct dirty *file = record_of(name);
    struct range *last = file->count ? &file->ranges[file->count - 1] : NULL;
    if (last && start <= last->end && start >= last->start)
        last->end = end > last->end ? end : last->end;
    else if (file->count < MOST_RANGES)
        file->ranges[file->count++] = (struct range){start, end};
    else { /* too many to tell apart: one that spans them */
        for (int i = 0; i < file->count; i++) {
            start = file->ranges[i].start < start ? file->ranges[i].start : start;
            end = file->ranges[i].end > end ? file->ranges[i].end : end;
        }
        file->count = 1;
        file->ranges[0] = (struct range){start, end};
    }
    pthread_mutex_unlock(&lock);
}

static void copy_range(int from, int to, struct range range) {
    char buffer[65536];
    while (range.start < range.end) {
        size_t wanted = range.end - range.start;
        ssize_t got = pread(from, buffer, wanted < sizeof buffer ? wanted : sizeof buffer, range.start);
        if (got <= 0)
            return;
        if (REAL(pwrite64)(to, buffer, got, range.start) != got)
            abort();
        range.start += got;
    }
}

/* Reads through the caller's descriptor: to open and close the file would drop SQLite's locks. */
static void synced_file(int fd, const char *name) {
    struct stat now;
    int to = shadow("files", name, O_WRONLY);
    if (to < 0 || fstat(fd, &now))
        abort();
    pthread_mutex_lock(&lock);
    struct dirty *file = record_of(name);
    if (REAL(ftruncate64)(to, now.st_size))
        abort();
    for (int i = 0; i < file->count; i++)
        copy_range(fd, to, file->ranges[i]);
    file->count = 0;
    pthread_mutex_unlock(&lock);
    REAL(close)(to);
}

static void synced_directory(void) {
    char names[PATH_MAX], path[PATH_MAX * 2];
    struct dirent *entry;
    DIR *now = opendir(setting("DISK_DIR"));
    while (now && (entry = readdir(now)))
        if (is_followed(entry->d_name) && *entry->d_name != '.')
            REAL(close)(shadow("names", entry->d_name, O_WRONLY));
    closedir(now);
    snprintf(names, sizeof names, "%s/names", setting("DISK_SHADOW"));
    DIR *before = opendir(names);
    while (before && (entry = readdir(before))) {
        snprintf(path, sizeof path, "%s/%s", setting("DISK_DIR"), entry->d_name);
        if (*entry->d_name != '.' && access(path, F_OK))
            unlinkat(dirfd(before), entry->d_name, 0);
    }
    closedir(before);
}

static void synced(int fd, const char *name) {
    if (!name || !setting("DISK_SHADOW"))
        return;
    if (!strcmp(name, ".."))
        REAL(close)(shadow(".", "root", O_WRONLY));
    else if (!*name)
        synced_directory();
    else if (is_followed(name))
        synced_file(fd, name);
}

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

#define OPEN(call)                                                                                 \
    int call(const char *path, int flags, ...) {                                                   \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                    \
        va_end(rest);                                                                              \
        return fails("open", below(path)) ? -1 : REAL(call)(path, flags, mode);                    \
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
