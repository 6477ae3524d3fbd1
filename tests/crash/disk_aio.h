/* Flushes that are asked of the kernel through libc's syscall(), seen when asked and when learned. */
#include <linux/aio_abi.h>
#include <stdint.h>
#include <sys/syscall.h>

/* One flush, and what its file held when it was asked for of all that was not synced. */
struct flush {
    struct iocb iocb; /* what the kernel gets, and names in its event */
    uint64_t asked_as;
    aio_context_t context;
    char name[64]; /* empty where nobody follows the file */
    int error;
    long number;
    off_t size;
    int count;
    struct range *ranges;
    char **contents;
};

static void remember(struct flush *flush, const char *name) {
    struct stat now;
    if (fstat(flush->iocb.aio_fildes, &now))
        abort();
    pthread_mutex_lock(&lock);
    struct dirty *file = record_of(name);
    strcpy(flush->name, file->name);
    flush->number = file->asked = ++moment;
    flush->size = now.st_size;
    flush->count = file->count;
    flush->ranges = calloc(file->count + 1, sizeof *flush->ranges);
    flush->contents = calloc(file->count + 1, sizeof *flush->contents);
    for (int i = 0; i < file->count; i++) {
        struct range *range = &flush->ranges[i];
        *range = file->ranges[i];
        flush->contents[i] = malloc(range->end - range->start);
        range->end = range->start + read_range(flush->iocb.aio_fildes, flush->contents[i], *range);
    }
    pthread_mutex_unlock(&lock);
}

/* Somebody knows now that it has landed. One that a later sync has overtaken tells nothing new. */
static void landed(struct flush *flush) {
    pthread_mutex_lock(&lock);
    struct dirty *file = record_of(flush->name);
    if (flush->number > file->synced) {
        int to = shadow("files", flush->name, O_WRONLY), left = 0;
        if (to < 0 || REAL(ftruncate64)(to, flush->size))
            abort();
        for (int i = 0; i < flush->count; i++) {
            struct range range = flush->ranges[i];
            write_range(to, flush->contents[i], range.end - range.start, range.start);
        }
        REAL(close)(to);
        for (int i = 0; i < file->count; i++)
            if (file->ranges[i].number > flush->number)
                file->ranges[left++] = file->ranges[i];
        file->count = left;
        file->synced = flush->number;
    }
    pthread_mutex_unlock(&lock);
}

static void forget(struct flush *flush) {
    for (int i = 0; i < flush->count; i++)
        free(flush->contents[i]);
    free(flush->contents);
    free(flush->ranges);
    free(flush);
}

static long pass_on(struct flush *flush) {
    struct iocb *iocb = &flush->iocb;
    return REAL(syscall)(SYS_io_submit, flush->context, 1L, &iocb);
}

static bool is_held(void) {
    return setting("DISK_HOLD") && !access(setting("DISK_HOLD"), F_OK);
}

/* True for one flush each time that the test asks for it. */
static bool is_let_through(void) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.once", setting("DISK_HOLD"));
    return !unlink(path);
}

static void *pass_on_late(void *flush) {
    dawdle("");
    while (is_held() && !is_let_through())
        usleep(1000);
    if (pass_on(flush) != 1) /* the context is gone */
        forget(flush);
    return NULL;
}

static bool is_refused(const char *call) {
    char wanted[16];
    int error;
    const char *order = setting("DISK_AIO");
    if (!order || sscanf(order, "%15s %d", wanted, &error) != 2 || strcmp(wanted, call))
        return false;
    errno = error;
    return true;
}

static long submit(aio_context_t context, struct iocb *iocb) {
    char path[PATH_MAX];
    const char *name = name_of(iocb->aio_fildes, path);
    bool flushes = iocb->aio_lio_opcode == IOCB_CMD_FSYNC || iocb->aio_lio_opcode == IOCB_CMD_FDSYNC;
    if (name && (!flushes || !*name || !strcmp(name, ".."))) {
        errno = EINVAL;
        return -1;
    }
    struct flush *flush = calloc(1, sizeof *flush);
    flush->iocb = *iocb;
    flush->asked_as = (uintptr_t)iocb;
    flush->context = context;
    flush->error = fails("sync", name) ? errno : 0;
    if (is_followed(name))
        remember(flush, name);
    pthread_t thread;
    if (name && (setting("DISK_SYNC_MS") || is_held()))
        return pthread_create(&thread, NULL, pass_on_late, flush) || pthread_detach(thread) ? -1 : 1;
    long result = pass_on(flush);
    if (result != 1)
        forget(flush);
    return result;
}

static long submit_all(aio_context_t context, long count, struct iocb **iocbs) {
    if (is_refused("submit"))
        return -1;
    for (long i = 0; i < count; i++)
        if (submit(context, iocbs[i]) != 1)
            return i ? i : -1;
    return count;
}

static long learn(long count, struct io_event *events) {
    for (long i = 0; i < count; i++) {
        struct flush *flush = (struct flush *)(uintptr_t)events[i].obj;
        events[i].obj = flush->asked_as;
        if (flush->error)
            events[i].res = -flush->error;
        if (!events[i].res && *flush->name)
            landed(flush);
        forget(flush);
    }
    return count;
}

long syscall(long number, ...) {
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(rest, long);
    va_end(rest);
    if (setting("DISK_DIR"))
        switch (number) {
        case SYS_fsync:
            return fsync(given[0]);
        case SYS_fdatasync:
            return fdatasync(given[0]);
        case SYS_io_uring_setup:
            errno = ENOSYS;
            return -1;
        case SYS_io_setup:
            if (is_refused("setup"))
                return -1;
            break;
        case SYS_io_submit:
            return submit_all(given[0], given[1], (struct iocb **)given[2]);
        }
    long result =
        REAL(syscall)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    if (setting("DISK_DIR") && (number == SYS_io_getevents || number == SYS_io_pgetevents))
        return learn(result, (struct io_event *)given[3]);
    return result;
}
