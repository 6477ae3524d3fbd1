/* What a power cut would leave at worst: kept beside the files, and brought up to date by syncs. */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

#define MOST_RANGES 4096

/* `number` tells the order of writes, flushes and syncs. */
struct range { off_t start, end; long number; };

/* What was written to one file since it was last synced, and the newest flush and sync of it. */
struct dirty {
    char name[64];
    long asked, synced;
    int count;
    struct range ranges[MOST_RANGES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dirty dirty[8];
static long moment;

/* Paths in the shadow. */
static int shadow(const char *folder, const char *name, int flags) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", setting("DISK_SHADOW"), folder, name);
    return REAL(open)(path, flags | O_CREAT | O_CLOEXEC, 0644);
}

static bool is_followed(const char *name) {
    const char *forgotten = setting("DISK_FORGETS");
    if (name && forgotten && strlen(name) >= strlen(forgotten) &&
        !strcmp(name + strlen(name) - strlen(forgotten), forgotten))
        return false;
    return name && *name && strcmp(name, "..") && !strstr(name, "-shm") && setting("DISK_SHADOW");
}

/* What was synced of a file is there under either name. A sync of the directory tells which. */
static void renamed(const char *from, const char *to) {
    char before[PATH_MAX], after[PATH_MAX];
    if (!is_followed(from) || !is_followed(to))
        return;
    snprintf(before, sizeof before, "%s/files/%s", setting("DISK_SHADOW"), from);
    snprintf(after, sizeof after, "%s/files/%s", setting("DISK_SHADOW"), to);
    unlink(after);
    if (link(before, after) && errno != ENOENT)
        abort();
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
    bool goes_on = last && start <= last->end && start >= last->start;
    if (goes_on && last->number > file->asked)
        last->end = end > last->end ? end : last->end;
    else if (file->count < MOST_RANGES)
        file->ranges[file->count++] = (struct range){start, end, ++moment};
    else { /* too many to tell apart: one that spans them */
        for (int i = 0; i < file->count; i++) {
            start = file->ranges[i].start < start ? file->ranges[i].start : start;
            end = file->ranges[i].end > end ? file->ranges[i].end : end;
        }
        file->count = 1;
        file->ranges[0] = (struct range){start, end, ++moment};
    }
    pthread_mutex_unlock(&lock);
}

/* All of a range, or less where the file ends before. */
static size_t read_range(int from, char *buffer, struct range range) {
    size_t wanted = range.end - range.start, done = 0;
    while (done < wanted) {
        ssize_t got = pread(from, buffer + done, wanted - done, range.start + done);
        if (got < 0) {
            perror("disk.c: what is flushed cannot be read");
            abort();
        }
        if (!got)
            break;
        done += got;
    }
    return done;
}

static void write_range(int to, const char *buffer, size_t size, off_t start) {
    for (size_t done = 0; done < size;) {
        ssize_t put = REAL(pwrite64)(to, buffer + done, size - done, start + done);
        if (put <= 0)
            abort();
        done += put;
    }
}

/* The descriptor itself: to open and close the file would drop SQLite's locks. One that only writes
 * is none of SQLite's. */
static int readable(int fd) {
    char path[32];
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
        return fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return REAL(open)(path, O_RDONLY | O_CLOEXEC);
}

static void synced_file(int fd, const char *name) {
    struct stat now;
    int from = readable(fd), to = shadow("files", name, O_WRONLY);
    if (from < 0 || to < 0 || fstat(fd, &now))
        abort();
    pthread_mutex_lock(&lock);
    struct dirty *file = record_of(name);
    if (REAL(ftruncate64)(to, now.st_size))
        abort();
    for (int i = 0; i < file->count; i++) {
        char *buffer = malloc(file->ranges[i].end - file->ranges[i].start);
        size_t size = read_range(from, buffer, file->ranges[i]);
        write_range(to, buffer, size, file->ranges[i].start);
        free(buffer);
    }
    file->count = 0;
    file->synced = ++moment;
    pthread_mutex_unlock(&lock);
    REAL(close)(to);
    if (from != fd)
        REAL(close)(from);
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
