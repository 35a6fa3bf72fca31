/* File operations: what is quick is done here and now; what takes as long as a tree is large is done by a child that has
 * nothing of ours but the pipe it answers through.
 */
#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "digest.h"
#include "fileop.h"
#include "listing.h"
#include "place.h"
#include "protocol.h"
#include "remove.h"
#include "sys.h"
#include "tree.h"
#include "upload.h"

/* What a child does; the answer is in `of->into` when it returns 0. */
typedef int (*task)(struct fileop *of);

static void keep_only(int answer)
{
    enum { USUAL_LIMIT = 1024 };
    if (answer > 3) sys_close_range(3, (unsigned)answer - 1);
    if (sys_close_range((unsigned)answer + 1, ~0u) < 0) /* before Linux 5.9 */
        for (int fd = 3; fd < USUAL_LIMIT; fd++)
            if (fd != answer) close(fd);
    close(0);
    close(1);
}

/* Nobody waits for the answer any more: be ended by SIGIO, which the pipe sends when its other end is closed. */
static void end_with_reader(int out)
{
    struct pollfd now = {.fd = out};
    signal(SIGIO, SIG_DFL);
    if (fcntl(out, F_SETOWN, getpid()) < 0 || fcntl(out, F_SETFL, O_ASYNC) < 0) return;
    if (poll(&now, 1, 0) > 0 && now.revents & POLLERR) _exit(1); /* it was closed before that */
}

static _Noreturn void child(struct fileop *of, task task, int out, pid_t agent)
{
    struct buffer answer = {0};
    sigset_t none;
    sigemptyset(&none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() != agent) _exit(1);
    keep_only(out);
    end_with_reader(out);
    of->into = &answer;
    if (task(of) < 0) fileop_failed(of, errno);
    fcntl(out, F_SETFL, 0); /* from here on SIGPIPE says it */
    for (size_t sent = 0; sent < answer.used;) {
        ssize_t done = write(out, answer.data + sent, answer.used - sent);
        if (done < 0 && errno != EINTR) _exit(1);
        if (done > 0) sent += (size_t)done;
    }
    _exit(0);
}

/* The descriptor to read the answer from, or -2 with errno. */
static int later(struct fileop *of, task task)
{
    int ends[2];
    pid_t agent = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0) return -2;
    while (ends[1] < 3) { /* a descriptor that the child will not close */
        int moved = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
        place_close(ends[1]);
        ends[1] = moved;
        if (moved < 0) break;
    }
    uint64_t tag = tag_next(); /* or it would be taken for a process that took its own off */
    pid_t pid = ends[1] < 0 ? -1 : fork();
    if (pid == 0) {
        tag_put_on(tag);
        child(of, task, ends[1], agent);
    }
    place_close(ends[1]);
    if (pid > 0) return ends[0];
    place_close(ends[0]);
    return -2;
}

static int digest_tree(struct fileop *of)
{
    struct digest digest;
    if (tree_digest(of->path, &digest, of->where, sizeof of->where) < 0) return -1;
    size_t began = frame_begin(of->into, OP_DATA, 0, of->id);
    put_u64(of->into, digest.entries);
    put_bytes(of->into, digest.bytes, sizeof digest.bytes);
    frame_end(of->into, began);
    return 0;
}

static int remove_tree(struct fileop *of)
{
    char name[NAME_ROOM];
    int parent = place_parent(of->path, name);
    if (parent < 0) return -1;
    if (tree_remove(parent, name, of->where, sizeof of->where) == 0) return fileop_done(of);
    const char *below = strchr(of->where, '/'); /* `where` begins with the name itself */
    memmove(of->where, below ? below + 1 : "", below ? strlen(below) : 1);
    return -1;
}

static int list_up_to(struct fileop *of, size_t most)
{
    int fd = place_open(of->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0) return -1;
    size_t began = frame_begin(of->into, OP_ENTRIES, 0, of->id);
    int done = put_entries(of->into, fd, most);
    place_close(fd);
    if (done < 0) of->into->used = began;
    else frame_end(of->into, began);
    return done;
}

static int list_all(struct fileop *of) { return list_up_to(of, SIZE_MAX); }

static int list(struct fileop *of)
{
    if (fileop_path(of) < 0) return -2;
    if (list_up_to(of, LISTING_SHORT) == 0) return -1;
    return errno == EOVERFLOW ? later(of, list_all) : -2;
}

static int remove_it(struct fileop *of)
{
    char name[NAME_ROOM];
    bool whole = take_u32(&of->body);
    if (fileop_path(of) < 0) return -2;
    int parent = place_parent(of->path, name);
    if (parent < 0) return -2;
    int done = entry_remove(parent, name);
    place_close(parent);
    if (done == 0) return fileop_done(of) - 1;
    return whole && (errno == ENOTEMPTY || errno == EEXIST) ? later(of, remove_tree) : -2;
}

/* -1: answered; -2: failed, with errno; else what the answer comes out of. */
static int act(struct fileop *of)
{
    switch (of->op) {
    case OP_READ: return fileop_read(of) - 1;
    case OP_WRITE: return fileop_write(of) - 1;
    case OP_STAT: return fileop_stat(of) - 1;
    case OP_LOOK: return fileop_look(of) - 1;
    case OP_MKDIR: return fileop_mkdir(of) - 1;
    case OP_RENAME: return fileop_rename(of) - 1;
    case OP_SYMLINK: return fileop_symlink(of) - 1;
    case OP_CHMOD:
    case OP_CHOWN: return fileop_change(of) - 1;
    case OP_REMOVE: return remove_it(of);
    case OP_DIR: return list(of);
    case OP_DIGEST: return fileop_path(of) < 0 ? -2 : later(of, digest_tree);
    default: errno = ENOSYS; return -2;
    }
}

int files_answer(uint8_t op, uint8_t flags, uint32_t id, struct reader body, struct buffer *into)
{
    struct fileop of = {.op = op, .id = id, .body = body, .into = into};
    (void)flags; /* none are known */
    int done = act(&of);
    if (done != -2) return done;
    fileop_failed(&of, errno);
    return -1;
}

void files_forget(void) { uploads_forget(); }
