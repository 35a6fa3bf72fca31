#define _GNU_SOURCE
#include "place.h"

#include <errno.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "sys.h"

enum { LINKS = 40, PARENT_MODE = 0755 };

void place_close(int fd)
{
    int kept = errno;
    if (fd >= 0) close(fd);
    errno = kept;
}

static int openat2_here(const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_NO_MAGICLINKS};
    return (int)syscall(__NR_openat2, AT_FDCWD, path, &how, sizeof how);
}

int place_open(const char *path, int flags)
{
    static int known; /* 1: there is openat2; -1: Linux before 5.6, or a filter: then the kernel's own links are followed */
    flags |= O_CLOEXEC;
    if (known == 0) {
        int root = openat2_here("/", O_PATH | O_CLOEXEC);
        known = root < 0 ? -1 : 1;
        place_close(root);
    }
    return known > 0 ? openat2_here(path, flags) : open(path, flags);
}

bool place_is_proc(int fd)
{
    struct statfs about;
    return fstatfs(fd, &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

/* Is it below /proc/OWN-PID, wherever /proc is mounted? */
static bool is_agent(int fd)
{
    char link[64], path[PATH_MAX], mine[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    snprintf(mine, sizeof mine, "/%d/", (int)getpid());
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return true; /* cannot tell: no */
    path[length] = 0;
    return strstr(path, mine) != NULL;
}

static int check_regular(int fd)
{
    struct stat about;
    if (fstat(fd, &about) < 0) return -1;
    if (S_ISREG(about.st_mode)) return 0;
    errno = S_ISDIR(about.st_mode) ? EISDIR : ENXIO;
    return -1;
}

int place_regular(const char *path, int access)
{
    int fd = place_open(path, O_PATH);
    if (fd < 0) return -1;
    int done = check_regular(fd);
    place_close(fd);
    if (done < 0) return -1;
    fd = place_open(path, access | O_NONBLOCK | O_NOCTTY); /* may be something else by now: asked again */
    if (fd < 0) return -1;
    done = check_regular(fd);
    if (done == 0 && place_is_proc(fd) && (access != O_RDONLY || is_agent(fd))) {
        errno = EACCES;
        done = -1;
    }
    if (done == 0) return fd;
    place_close(fd);
    return -1;
}

/* Cut the last name off `path`, which then names its directory. */
static int split(char *path, char name[NAME_ROOM])
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/') path[--length] = 0;
    char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
        errno = EINVAL;
        return -1;
    }
    if (strlen(last) > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, last, strlen(last) + 1);
    if (slash) slash[slash == path] = 0;
    return 0;
}

static int copy_path(char into[PATH_MAX], const char *path)
{
    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(into, path, strlen(path) + 1);
    return 0;
}

int place_parent(const char *path, char name[NAME_ROOM])
{
    char above[PATH_MAX];
    if (copy_path(above, path) < 0 || split(above, name) < 0) return -1;
    return place_open(above, O_PATH | O_DIRECTORY);
}

/* What `path` is, were its last name replaced by `target`. */
static int redirect(char path[PATH_MAX], const char *target)
{
    char name[NAME_ROOM], redirected[PATH_MAX];
    if (*target == '/') return copy_path(path, target);
    if (split(path, name) < 0) return -1;
    int length = snprintf(redirected, sizeof redirected, "%s/%s", path, target);
    if (length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return copy_path(path, redirected);
}

int place_followed(const char *path, char name[NAME_ROOM])
{
    char now[PATH_MAX], target[PATH_MAX];
    if (copy_path(now, path) < 0) return -1;
    for (int links = 0; links < LINKS; links++) {
        int parent = place_parent(now, name);
        if (parent < 0) return -1;
        ssize_t length = readlinkat(parent, name, target, sizeof target - 1);
        if (length < 0 && (errno == EINVAL || errno == ENOENT)) return parent; /* no link, or nothing yet */
        place_close(parent);
        if (length < 0) return -1;
        target[length] = 0;
        if (redirect(now, target) < 0) return -1;
    }
    errno = ELOOP;
    return -1;
}

int place_make_directory(int parent, const char *name, mode_t mode)
{
    mode_t usual = umask(0);
    int done = mkdirat(parent, name, mode);
    umask(usual);
    return done;
}

static int make_owned(const char *path, uid_t uid, gid_t gid)
{
    char name[NAME_ROOM];
    int parent = place_parent(path, name);
    if (parent < 0) return errno == EINVAL ? 0 : -1; /* `.` and `..` are there already */
    int done = place_make_directory(parent, name, PARENT_MODE);
    if (done == 0 && (uid != geteuid() || gid != getegid()))
        done = fchownat(parent, name, uid, gid, AT_SYMLINK_NOFOLLOW);
    else if (done < 0 && errno == EEXIST)
        done = 0;
    place_close(parent);
    return done;
}

int place_make_parents(const char *path, uid_t uid, gid_t gid)
{
    char part[PATH_MAX];
    if (copy_path(part, path) < 0) return -1;
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        if (slash[-1] == '/' || strspn(slash, "/") == strlen(slash)) continue; /* doubled, or only trailing */
        *slash = 0;
        int done = make_owned(part, uid, gid);
        *slash = '/';
        if (done < 0) return -1;
    }
    return 0;
}
