#define _GNU_SOURCE
#include "upload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "place.h"
#include "sys.h"

enum { ONLY_OURS = 0600, MODE_BITS = 07777, NAMES_TRIED = 16 };

struct upload {
    uint32_t id;
    bool used, failed;
    int file, parent; /* `parent` is -1 when written in place */
    mode_t mode;
    uid_t uid;
    gid_t gid;
    char name[NAME_ROOM], hidden[32];
};

static struct upload uploads[UPLOAD_LIMIT];

static struct upload *find(uint32_t id)
{
    for (int i = 0; i < UPLOAD_LIMIT; i++)
        if (uploads[i].used && uploads[i].id == id) return &uploads[i];
    return NULL;
}

/* A free place, or that of an upload that failed and whose end never came. */
static struct upload *place(void)
{
    struct upload *failed = NULL;
    for (int i = 0; i < UPLOAD_LIMIT; i++) {
        if (!uploads[i].used) return &uploads[i];
        if (uploads[i].failed) failed = &uploads[i];
    }
    if (failed == NULL) errno = EMFILE;
    return failed;
}

static struct upload *add(uint32_t id, const struct write_head *head)
{
    struct upload *upload = place();
    if (upload == NULL) return NULL;
    *upload = (struct upload){.id = id, .used = true, .file = -1, .parent = -1};
    upload->mode = head->mode & MODE_BITS;
    upload->uid = head->uid;
    upload->gid = head->gid;
    return upload;
}

/* Close what is open, and take back what has not got its name. */
static void let_go(struct upload *upload)
{
    int error = errno;
    if (upload->parent >= 0 && upload->hidden[0]) unlinkat(upload->parent, upload->hidden, 0);
    place_close(upload->file);
    place_close(upload->parent);
    upload->file = upload->parent = -1;
    upload->hidden[0] = 0;
    errno = error;
}

/* -1 in uid or gid: whoever the agent is. */
static int own(const struct upload *upload, int file)
{
    struct stat about;
    if (fstat(file, &about) < 0) return -1;
    bool other_user = upload->uid != (uid_t)-1 && upload->uid != about.st_uid;
    bool other_group = upload->gid != (gid_t)-1 && upload->gid != about.st_gid;
    if ((other_user || other_group) && fchown(file, upload->uid, upload->gid) < 0) return -1;
    return fchmod(file, upload->mode); /* after the owner: changing that takes set-user-id bits away */
}

/* Take over mode and owner of what is there. ENOENT if nothing is. */
static int regard_existing(struct upload *upload)
{
    struct stat about;
    if (fstatat(upload->parent, upload->name, &about, AT_SYMLINK_NOFOLLOW) < 0) return -1;
    if (!S_ISREG(about.st_mode)) {
        errno = S_ISDIR(about.st_mode) ? EISDIR : S_ISLNK(about.st_mode) ? ELOOP : ENXIO;
        return -1;
    }
    upload->mode = about.st_mode & MODE_BITS;
    upload->uid = about.st_uid;
    upload->gid = about.st_gid;
    return 0;
}

static int create(int parent, const char *name)
{
    return openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, ONLY_OURS);
}

static int create_hidden(struct upload *upload)
{
    for (int tries = 0; tries < NAMES_TRIED; tries++) {
        uint64_t random;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = upload->id + (uint64_t)tries;
        snprintf(upload->hidden, sizeof upload->hidden, ".excise-%016llx", (unsigned long long)random);
        upload->file = create(upload->parent, upload->hidden);
        if (upload->file >= 0) return 0;
        if (errno != EEXIST) break;
    }
    upload->hidden[0] = 0; /* not ours */
    return -1;
}

static int begin_beside(struct upload *upload, const char *path)
{
    upload->parent = place_followed(path, upload->name);
    if (upload->parent < 0) return -1;
    if (place_is_proc(upload->parent)) {
        errno = EACCES;
        return -1;
    }
    if (regard_existing(upload) < 0 && errno != ENOENT) return -1;
    return create_hidden(upload);
}

static int begin_in_place(struct upload *upload, const char *path)
{
    upload->file = place_regular(path, O_WRONLY);
    if (upload->file >= 0) return ftruncate(upload->file, 0);
    if (errno != ENOENT) return -1;
    int parent = place_followed(path, upload->name);
    if (parent < 0) return -1;
    upload->file = place_is_proc(parent) ? (errno = EACCES, -1) : create(parent, upload->name);
    place_close(parent);
    return upload->file < 0 ? -1 : own(upload, upload->file);
}

static int begin(struct upload *upload, uint32_t flags, const char *path)
{
    if (flags & WRITE_PARENTS) {
        uid_t uid = upload->uid == (uid_t)-1 ? geteuid() : upload->uid;
        gid_t gid = upload->gid == (gid_t)-1 ? getegid() : upload->gid;
        if (place_make_parents(path, uid, gid) < 0) return -1;
    }
    return flags & WRITE_IN_PLACE ? begin_in_place(upload, path) : begin_beside(upload, path);
}

static int put(int file, const unsigned char *data, size_t size)
{
    while (size) {
        ssize_t done = write(file, data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        data += done;
        size -= (size_t)done;
    }
    return 0;
}

/* Give the file its owner and its name, at once. */
static int appear(struct upload *upload)
{
    if (upload->parent < 0) return 0;
    if (regard_existing(upload) < 0 && errno != ENOENT) return -1;
    if (own(upload, upload->file) < 0) return -1;
    if (renameat(upload->parent, upload->hidden, upload->parent, upload->name) < 0) return -1;
    upload->hidden[0] = 0;
    return 0;
}

static void drop(struct upload *upload)
{
    let_go(upload);
    upload->used = false;
}

enum uploaded upload_piece(
    uint32_t id, const struct write_head *head, const char *path, const unsigned char *data, size_t size)
{
    struct upload *upload = find(id);
    if (head->flags & WRITE_FIRST) {
        if (upload) drop(upload); /* the client starts over */
        upload = add(id, head);
        if (upload) upload->failed = begin(upload, head->flags, path) < 0;
    } else if (upload == NULL) {
        errno = EBADF;
    } else if (upload->failed) {
        if (head->flags & WRITE_LAST) drop(upload);
        return UPLOAD_GOES_ON;
    }
    if (upload == NULL) return UPLOAD_FAILED;
    bool last = head->flags & WRITE_LAST;
    if (!upload->failed) upload->failed = put(upload->file, data, size) < 0 || (last && appear(upload) < 0);
    bool failed = upload->failed;
    if (failed) let_go(upload);
    if (last) drop(upload);
    return failed ? UPLOAD_FAILED : last ? UPLOAD_DONE : UPLOAD_GOES_ON;
}

void uploads_forget(void)
{
    for (int i = 0; i < UPLOAD_LIMIT; i++)
        if (uploads[i].used) drop(&uploads[i]);
}
