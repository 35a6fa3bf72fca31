#define _GNU_SOURCE
#include "fileop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "listing.h"
#include "place.h"
#include "protocol.h"
#include "sys.h"
#include "upload.h"

enum { STEP = 64 << 10 };

/* What the errno of a file operation means here. */
static const char *meaning(int error)
{
    switch (error) {
    case ENXIO: return "not a regular file: pipes, sockets and devices are neither read nor written";
    case ELOOP: return "too many links, or one of the kernel's own (such as /proc/self/fd)";
    case EINVAL: return "the path names no entry of a directory, or a number is out of range";
    case ESTALE: return "it was changed meanwhile; try again";
    case EBADF: return "no upload is under way with this id: begin with WRITE_FIRST";
    case EMFILE: return "too many uploads under way";
    case EPROTO: return "the request is malformed";
    case EOVERFLOW: return "too many entries for one answer; list them with a command";
    default: return strerror(error);
    }
}

void fileop_failed(struct fileop *of, int error)
{
    char message[PATH_MAX + WHERE + 128];
    const char *between = of->where[0] ? "/" : "";
    int length = snprintf(message, sizeof message, "%s%s%s: %s", of->path, between, of->where, meaning(error));
    size_t began = frame_begin(of->into, OP_ERROR, 0, of->id);
    put_u32(of->into, (uint32_t)error);
    put_text(of->into, message, (size_t)length);
    frame_end(of->into, began);
}

int fileop_done(struct fileop *of)
{
    frame_end(of->into, frame_begin(of->into, OP_DONE, 0, of->id));
    return 0;
}

/* A path of the body, made absolute: relative ones count from the root. */
static int take_path(struct fileop *of, char into[PATH_MAX])
{
    struct text text = take_text(&of->body);
    bool absolute = text.length && *text.at == '/';
    if (of->body.bad) errno = EPROTO;
    else if (text.length == 0) errno = ENOENT;
    else if (!text_copy(text, into + !absolute, PATH_MAX - !absolute)) errno = ENAMETOOLONG;
    else {
        if (!absolute) into[0] = '/';
        return 0;
    }
    return -1;
}

int fileop_path(struct fileop *of)
{
    if (take_path(of, of->path) < 0) return -1;
    if (of->body.left == 0) return 0;
    errno = EPROTO;
    return -1;
}

/* As much as there is up to `most`; files of /proc do not know their size, and are read until they end. */
static int put_content(struct buffer *into, int fd, uint64_t size, uint64_t offset, size_t most)
{
    size_t total = 0;
    size_t known = size > offset ? (size - offset < most ? (size_t)(size - offset) : most) : 0;
    if (size && known == 0) return 0;
    for (ssize_t got = 1; got > 0 && total < (size ? known : most);) {
        size_t want = size ? known - total : most - total < STEP ? most - total : STEP;
        unsigned char *at = put_room(into, want);
        if (at == NULL) return -1;
        do got = pread(fd, at, want, (off_t)(offset + total));
        while (got < 0 && errno == EINTR);
        into->used -= want - (got > 0 ? (size_t)got : 0);
        if (got < 0) return -1;
        total += (size_t)got;
    }
    return 0;
}

int fileop_read(struct fileop *of)
{
    struct stat about;
    if (take_path(of, of->path) < 0) return -1;
    uint64_t offset = take_u64(&of->body);
    uint32_t most = take_u32(&of->body);
    if (of->body.bad || of->body.left) errno = EPROTO;
    else if (most > REQUEST_LIMIT || offset > INT64_MAX - REQUEST_LIMIT) errno = EINVAL;
    else errno = 0;
    int fd = errno ? -1 : place_regular(of->path, O_RDONLY);
    if (fd < 0) return -1;
    size_t began = frame_begin(of->into, OP_DATA, 0, of->id);
    int done = fstat(fd, &about);
    put_u64(of->into, done == 0 ? (uint64_t)about.st_size : 0);
    if (done == 0) done = put_content(of->into, fd, (uint64_t)about.st_size, offset, most);
    place_close(fd);
    if (done < 0) of->into->used = began;
    else frame_end(of->into, began);
    return done;
}

int fileop_write(struct fileop *of)
{
    struct write_head head;
    size_t size;
    take_bytes(&of->body, &head, sizeof head);
    if (head.flags & WRITE_FIRST) {
        if (take_path(of, of->path) < 0) return -1;
    } else {
        take_text(&of->body);
    }
    if (of->body.bad) {
        errno = EPROTO;
        return -1;
    }
    const unsigned char *data = take_rest(&of->body, &size);
    switch (upload_piece(of->id, &head, of->path, data, size)) {
    case UPLOAD_DONE: return fileop_done(of);
    case UPLOAD_FAILED: return -1;
    default: return 0;
    }
}

int fileop_stat(struct fileop *of)
{
    bool follow = take_u32(&of->body);
    if (fileop_path(of) < 0) return -1;
    int fd = place_open(of->path, O_PATH | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0) return -1;
    for (size_t end = strlen(of->path); end > 1 && of->path[end - 1] == '/';) of->path[--end] = 0;
    size_t began = frame_begin(of->into, OP_ENTRY, 0, of->id);
    int done = put_entry(of->into, fd, "", strrchr(of->path, '/') + 1);
    place_close(fd);
    if (done < 0) of->into->used = began;
    else frame_end(of->into, began);
    return done;
}

static struct look look_at(const char *path, bool kind_alone)
{
    struct stat about;
    struct look look = {0};
    int fd = place_open(path, O_PATH);
    if (fd < 0) return look;
    if (fstat(fd, &about) == 0) {
        look.mode = about.st_mode & (kind_alone ? S_IFMT : ~0u);
        if (!kind_alone) {
            look.uid = about.st_uid;
            look.size = (uint64_t)about.st_size;
            look.mtime_ns = about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec;
        }
    }
    place_close(fd);
    return look;
}

int fileop_look(struct fileop *of)
{
    uint32_t count = take_u32(&of->body);
    size_t began = frame_begin(of->into, OP_DATA, 0, of->id);
    for (uint32_t i = 0; i < count && count <= LOOK_MOST && !of->body.bad; i++) {
        bool kind_alone = take_u32(&of->body);
        if (take_path(of, of->path) < 0) break;
        struct look look = look_at(of->path, kind_alone);
        put_bytes(of->into, &look, sizeof look);
    }
    if (of->into->used - began == HEAD_BYTES + count * sizeof(struct look) && of->body.left == 0 && !of->body.bad) {
        frame_end(of->into, began);
        return 0;
    }
    of->into->used = began;
    errno = EPROTO;
    return -1;
}

int fileop_mkdir(struct fileop *of)
{
    char name[NAME_ROOM];
    struct stat about;
    mode_t mode = take_u32(&of->body) & 07777;
    bool parents = take_u32(&of->body);
    if (fileop_path(of) < 0) return -1;
    if (parents) {
        int fd = place_open(of->path, O_PATH | O_DIRECTORY);
        place_close(fd);
        if (fd >= 0) return fileop_done(of); /* also of `/` */
        if (errno != ENOENT || place_make_parents(of->path, geteuid(), getegid()) < 0) return -1;
    }
    int parent = place_parent(of->path, name);
    if (parent < 0) return errno == EINVAL ? (errno = EEXIST, -1) : -1;
    int done = place_make_directory(parent, name, mode);
    if (done < 0 && errno == EEXIST && parents && fstatat(parent, name, &about, AT_SYMLINK_NOFOLLOW) == 0)
        done = S_ISDIR(about.st_mode) ? 0 : (errno = EEXIST, -1); /* somebody else was quicker */
    place_close(parent);
    return done < 0 ? -1 : fileop_done(of);
}

int fileop_rename(struct fileop *of)
{
    char to[PATH_MAX], from_name[NAME_ROOM], to_name[NAME_ROOM];
    if (take_path(of, of->path) < 0 || take_path(of, to) < 0) return -1;
    if (of->body.left) {
        errno = EPROTO;
        return -1;
    }
    int from_parent = place_parent(of->path, from_name);
    int to_parent = from_parent < 0 ? -1 : place_parent(to, to_name);
    int done = to_parent < 0 ? -1 : renameat(from_parent, from_name, to_parent, to_name);
    place_close(from_parent);
    place_close(to_parent);
    return done < 0 ? -1 : fileop_done(of);
}

int fileop_symlink(struct fileop *of)
{
    char target[PATH_MAX], name[NAME_ROOM];
    struct text text = take_text(&of->body);
    if (fileop_path(of) < 0) return -1;
    if (!text_copy(text, target, sizeof target)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int parent = place_parent(of->path, name);
    int done = parent < 0 ? -1 : symlinkat(target, parent, name);
    place_close(parent);
    return done < 0 ? -1 : fileop_done(of);
}

/* Of what a descriptor opened with O_PATH stands for; kernels before 6.6 want it by a name. */
static int change_mode(int fd, mode_t mode)
{
    enum { FCHMODAT2 = 452 };
    char link[64];
    if (syscall(FCHMODAT2, fd, "", mode, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOSYS && errno != EPERM) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return chmod(link, mode);
}

int fileop_change(struct fileop *of)
{
    uint32_t first = take_u32(&of->body); /* mode, or user */
    uint32_t group = of->op == OP_CHOWN ? take_u32(&of->body) : 0;
    if (fileop_path(of) < 0) return -1;
    int fd = place_open(of->path, O_PATH);
    if (fd < 0) return -1;
    int done;
    if (place_is_proc(fd)) done = (errno = EACCES, -1);
    else if (of->op == OP_CHMOD) done = change_mode(fd, first & 07777);
    else done = fchownat(fd, "", first, group, AT_EMPTY_PATH);
    place_close(fd);
    return done < 0 ? -1 : fileop_done(of);
}
