#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tree.h"

int nothing = -1;

int launches_prepare(void)
{
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    return nothing < 0 ? -1 : 0;
}

static int new_pipe(int ends[2], int ours)
{
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    return fcntl(ends[ours], F_SETFL, O_NONBLOCK);
}

int pipe_from(int *ours, int *theirs)
{
    int ends[2];
    if (new_pipe(ends, 0) < 0) return -1;
    *ours = ends[0];
    *theirs = ends[1];
    return 0;
}

int pipe_to(int *ours, int *theirs)
{
    int ends[2];
    if (new_pipe(ends, 1) < 0) return -1;
    *ours = ends[1];
    *theirs = ends[0];
    return 0;
}

/* The command's three ends, to be closed once it has them. */
struct ends {
    int in, out, err;
};

static void close_ends(const struct ends *ends)
{
    if (ends->in >= 0 && ends->in != nothing) close(ends->in);
    if (ends->out >= 0 && ends->out != ends->in) close(ends->out);
    if (ends->err >= 0 && ends->err != ends->out) close(ends->err);
}

static bool open_pipes(struct action *action, struct ends *ends)
{
    bool wants_input = action->input.used > 0 || action->flags & EXEC_STDIN_OPEN;
    if (wants_input && pipe_to(&action->in.fd, &ends->in) < 0) return false;
    if (!wants_input) ends->in = nothing;
    if (pipe_from(&action->out.fd, &ends->out) < 0) return false;
    if (!(action->flags & EXEC_MERGE)) return pipe_from(&action->err.fd, &ends->err) == 0;
    ends->err = ends->out;
    return true;
}

static bool open_terminal(struct action *action, struct ends *ends, const struct exec_head *head)
{
    int locked = 0;
    struct winsize size = {.ws_row = head->rows, .ws_col = head->columns};
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0) return false;
    action->out.fd = master;
    if (ioctl(master, TIOCSPTLCK, &locked) < 0) return false;
    ends->in = ends->out = ends->err = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends->in < 0) return false;
    if (size.ws_row && ioctl(master, TIOCSWINSZ, &size) < 0) return false;
    action->in.fd = fcntl(master, F_DUPFD_CLOEXEC, 3);
    return action->in.fd >= 0;
}

bool launch(struct action *action, const struct exec_request *request, const struct account *account,
    struct not_started *why)
{
    struct ends ends = {-1, -1, -1};
    bool terminal = action->flags & EXEC_PTY;
    bool opened = terminal ? open_terminal(action, &ends, &request->head) : open_pipes(action, &ends);
    *why = (struct not_started){FAULT_NO_ROOM, errno};
    if (opened) {
        struct spawn how = {
            .argv = request->argv, .env = request->env, .cwd = request->cwd, .path = request->path, .account = account,
            .limits = request->limits, .limit_count = request->head.limits, .umask = request->head.umask,
            .in = ends.in, .out = ends.out, .err = ends.err, .terminal = terminal, .tag = action->tag};
        action->result.spawned_ns = now_ns();
        action->pid = spawn(&how, why);
    }
    close_ends(&ends);
    if (opened && action->pid > 0) return true;
    watch_close(&action->in);
    watch_close(&action->out);
    watch_close(&action->err);
    return false;
}

void give_home(struct exec_request *request, const struct account *account, char *room, size_t size)
{
    if (variable(request->env, "HOME") != NULL) return;
    snprintf(room, size, "HOME=%s", account->home);
    request->env[request->head.envc] = room; /* there is room for one more and the end */
    request->env[request->head.envc + 1] = NULL;
}
