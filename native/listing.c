#define _GNU_SOURCE
#include "listing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "walk.h"

int put_entry(struct buffer *into, int directory, const char *name, const char *as)
{
    struct stat about;
    char target[PATH_MAX];
    ssize_t length = 0;
    if (fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0) return -1;
    if (S_ISLNK(about.st_mode)) length = readlinkat(directory, name, target, sizeof target);
    if (length < 0) return -1;
    put_u32(into, about.st_mode);
    put_u32(into, about.st_uid);
    put_u32(into, about.st_gid);
    put_u64(into, (uint64_t)about.st_size);
    put_u64(into, (uint64_t)(about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec));
    put_u32(into, (uint32_t)about.st_nlink);
    put_text(into, as, strlen(as));
    put_text(into, target, (size_t)length);
    return 0;
}

int put_entries(struct buffer *into, int directory, size_t most)
{
    struct names names;
    char *name;
    uint32_t count = 0;
    size_t began = into->used;
    int done = names_list(directory, most, &names);
    put_u32(into, count);
    while (done == 0 && (name = names_next(&names))) {
        if (put_entry(into, directory, name, name) == 0) count++;
        else if (errno != ENOENT && errno != EINVAL) done = -1; /* gone, or swapped: it is not there */
        free(name);
        if (done == 0 && (into->failed || into->used - began > LISTING_BYTES)) done = (errno = EOVERFLOW, -1);
    }
    int error = errno;
    names_free(&names);
    errno = error;
    if (done == 0 && !into->failed) memcpy(into->data + began, &count, sizeof count);
    return done;
}
