#define _GNU_SOURCE
#include "digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "place.h"
#include "sys.h"
#include "walk.h"

enum { PIECE = 64 << 10, ATTRIBUTES = 64 << 10 };

struct hashing {
    struct sha256 hash;
    uint64_t entries;
    unsigned char piece[PIECE];
    char attributes[ATTRIBUTES]; /* the kernel's own limit, of a list and of a value */
};

static void add_u8(struct hashing *to, uint8_t value) { sha256_add(&to->hash, &value, sizeof value); }
static void add_u32(struct hashing *to, uint32_t value) { sha256_add(&to->hash, &value, sizeof value); }
static void add_u64(struct hashing *to, uint64_t value) { sha256_add(&to->hash, &value, sizeof value); }

static void add_string(struct hashing *to, const void *data, size_t size)
{
    add_u32(to, (uint32_t)size);
    sha256_add(&to->hash, data, size);
}

static char kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return 'd';
    case S_IFREG: return 'f';
    case S_IFLNK: return 'l';
    case S_IFIFO: return 'p';
    case S_IFSOCK: return 's';
    case S_IFCHR: return 'c';
    default: return 'b';
    }
}

static void add_head(struct hashing *to, const struct stat *about, const char *name)
{
    to->entries++;
    add_u8(to, (uint8_t)kind_of(about->st_mode));
    add_u32(to, S_ISLNK(about->st_mode) ? 0777 : about->st_mode & 07777);
    add_u32(to, about->st_uid);
    add_u32(to, about->st_gid);
    add_string(to, name, strlen(name));
}

static bool counts(const char *attribute)
{
    return strncmp(attribute, "user.", 5) == 0 || strcmp(attribute, "security.capability") == 0 ||
           strcmp(attribute, "system.posix_acl_access") == 0 || strcmp(attribute, "system.posix_acl_default") == 0;
}

static int by_bytes(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

static int add_values(struct hashing *to, int fd, struct names *names)
{
    if (names->count) qsort(names->each, names->count, sizeof *names->each, by_bytes);
    add_u32(to, (uint32_t)names->count);
    for (size_t i = 0; i < names->count; i++) {
        ssize_t size = fgetxattr(fd, names->each[i], to->piece, sizeof to->piece);
        if (size < 0) return -1;
        add_string(to, names->each[i], strlen(names->each[i]));
        add_string(to, to->piece, (size_t)size);
    }
    return 0;
}

static int add_attributes(struct hashing *to, int fd)
{
    struct names names = {0};
    ssize_t size = flistxattr(fd, to->attributes, sizeof to->attributes);
    if (size < 0 && errno != ENOTSUP) return -1;
    int done = 0;
    for (ssize_t at = 0; at < size && done == 0; at += (ssize_t)strlen(to->attributes + at) + 1)
        if (counts(to->attributes + at)) done = names_add(&names, strdup(to->attributes + at));
    if (done == 0) done = add_values(to, fd, &names);
    int error = errno;
    names_free(&names);
    errno = error;
    return done;
}

static int add_content(struct hashing *to, int fd, uint64_t size)
{
    add_u64(to, size);
    while (size) {
        ssize_t got = read(fd, to->piece, size < PIECE ? size : PIECE);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) {
            errno = ESTALE; /* shorter than it was */
            return -1;
        }
        sha256_add(&to->hash, to->piece, (size_t)got);
        size -= (uint64_t)got;
    }
    return 0;
}

static int add_file(struct hashing *to, int parent, const char *name, const char *as)
{
    struct stat about;
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return -1;
    int done = fstat(fd, &about);
    if (done == 0 && !S_ISREG(about.st_mode)) {
        errno = ESTALE;
        done = -1;
    }
    if (done == 0) {
        add_head(to, &about, as);
        done = add_attributes(to, fd);
    }
    if (done == 0) done = add_content(to, fd, (uint64_t)about.st_size);
    place_close(fd);
    return done;
}

static int add_link(struct hashing *to, int parent, const char *name)
{
    ssize_t length = readlinkat(parent, name, (char *)to->piece, sizeof to->piece);
    if (length < 0) {
        if (errno == EINVAL) errno = ESTALE;
        return -1;
    }
    add_string(to, to->piece, (size_t)length);
    return 0;
}

/* Anything but a directory, under the name `as`. */
static int add_leaf(struct hashing *to, int parent, const char *name, const struct stat *about, const char *as)
{
    if (S_ISREG(about->st_mode)) return add_file(to, parent, name, as);
    add_head(to, about, as);
    if (S_ISLNK(about->st_mode)) return add_link(to, parent, name);
    if (S_ISCHR(about->st_mode) || S_ISBLK(about->st_mode)) {
        add_u32(to, major(about->st_rdev));
        add_u32(to, minor(about->st_rdev));
    }
    return 0;
}

/* The record of the directory that the walk has just entered, up to what is in it. */
static int enter(struct hashing *to, struct walk *walk)
{
    struct stat about;
    struct level *level = walk_level(walk);
    if (fstat(walk->here, &about) < 0) return -1;
    add_head(to, &about, level->name ? level->name : "");
    if (add_attributes(to, walk->here) < 0) return -1;
    level->listed = true;
    return names_list(walk->here, SIZE_MAX, &level->names);
}

static int step(struct hashing *to, struct walk *walk, char *where, size_t room)
{
    struct stat about;
    char *name = names_next(&walk_level(walk)->names);
    int done;
    if (name == NULL) {
        add_u8(to, 0);
        return walk_up(walk);
    }
    done = fstatat(walk->here, name, &about, AT_SYMLINK_NOFOLLOW);
    if (done == 0 && S_ISDIR(about.st_mode)) {
        done = walk_down(walk, name);
        if (done == 0) done = enter(to, walk);
    } else if (done == 0) {
        done = add_leaf(to, walk->here, name, &about, name);
    }
    int error = errno;
    if (done < 0) walk_where(walk, name, where, room);
    free(name);
    errno = error;
    return done;
}

static int add_tree(struct hashing *to, int directory, char *where, size_t room)
{
    struct walk walk;
    int done = walk_begin(&walk, directory);
    if (done == 0) done = enter(to, &walk);
    while (done == 0 && (walk.depth > 1 || walk_level(&walk)->names.next < walk_level(&walk)->names.count))
        done = step(to, &walk, where, room);
    if (done == 0) add_u8(to, 0);
    int error = errno;
    walk_end(&walk);
    errno = error;
    return done;
}

static int add_top(struct hashing *to, const char *path, char *where, size_t room)
{
    char name[NAME_ROOM];
    struct stat about;
    int directory = place_open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (directory >= 0) return add_tree(to, directory, where, room);
    if (errno != ENOTDIR) return -1;
    int parent = place_followed(path, name);
    if (parent < 0) return -1;
    int done = fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW);
    if (done == 0) done = add_leaf(to, parent, name, &about, "");
    place_close(parent);
    return done;
}

int tree_digest(const char *path, struct digest *digest, char *where, size_t room)
{
    static const char version[] = "excise tree 1\n";
    struct hashing *to = malloc(sizeof *to);
    *where = 0;
    if (to == NULL) return -1;
    to->entries = 0;
    sha256_begin(&to->hash);
    sha256_add(&to->hash, version, sizeof version - 1);
    int done = add_top(to, path, where, room);
    int error = errno;
    digest->entries = to->entries;
    sha256_end(&to->hash, digest->bytes);
    free(to);
    errno = error;
    return done;
}
