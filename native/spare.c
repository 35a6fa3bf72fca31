/* It is the same bash with the same environment, directory, account and limits, that waits for one byte and then
 * evaluates a line: the script as one $'...' word. What a script can tell apart: BASH_EXECUTION_STRING, its shell's own
 * command line, that the last command is not exec'd, and "eval:" instead of "-c:" where its syntax is wrong.
 */
#define _GNU_SOURCE
#include "spare.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "quote.h"
#include "tree.h"

enum { WAKE = 197, LINE = 198, OUT_OF_THE_WAY = 256 };

static char wrapper[] = "IFS= read -rN1 -u197 __excise;IFS= read -r -u198 __excise;exec 197<&- 198<&-;SECONDS=0;"
                        "eval \"unset __excise;eval $__excise\"";

static struct {
    pid_t pid; /* 0: there is none */
    uint64_t tag;
    int wake, line, out, err;
    struct buffer setting; /* the request it was made for, without its script */
    dev_t device;          /* and the directory that it stands in: another may have come to the same path */
    ino_t inode;
} spare;

static struct buffer wished;

static bool is_plain(const struct exec_request *request)
{
    const struct exec_head *head = &request->head;
    if (!(head->flags & EXEC_ONE_SHOT) || head->flags & ~(uint32_t)(EXEC_ONE_SHOT | EXEC_STREAM | EXEC_BACKGROUND)) return false;
    if (head->argc != 3 || head->stdin_bytes > 0) return false;
    if (strcmp(request->argv[0], "bash") != 0 || strcmp(request->argv[1], "-c") != 0) return false;
    return variable(request->env, "BASH_ENV") == NULL;
}

/* The body of a request that differs from `request` in what it runs, and is like any other that would do. */
static void setting_of(const struct exec_request *request, struct buffer *setting)
{
    struct exec_head head = {.envc = request->head.envc, .limits = request->head.limits, .umask = request->head.umask};
    setting->used = 0;
    put_bytes(setting, &head, sizeof head);
    put_text(setting, request->user.at, request->user.length);
    put_text(setting, request->cwd, strlen(request->cwd));
    put_bytes(setting, request->setting, request->setting_bytes);
}

static bool equal(const struct buffer *one, const struct buffer *other)
{
    return !one->failed && !other->failed && one->used == other->used && memcmp(one->data, other->data, one->used) == 0;
}

static bool still_stands(const char *cwd)
{
    struct stat status;
    siginfo_t info = {0};
    if (stat(cwd, &status) < 0 || status.st_dev != spare.device || status.st_ino != spare.inode) return false;
    return waitid(P_PID, (id_t)spare.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

static bool hand_over(const char *script)
{
    struct buffer line = {0};
    quote(&line, script, strlen(script));
    put_u8(&line, '\n');
    bool put = !line.failed && pwrite(spare.line, line.data, line.used, 0) == (ssize_t)line.used;
    buffer_free(&line);
    return put && write(spare.wake, "!", 1) == 1;
}

static void close_ends(bool also_output)
{
    close(spare.wake);
    close(spare.line);
    if (also_output) close(spare.out), close(spare.err);
    spare.pid = 0;
}

bool spare_take(struct action *action, const struct exec_request *request)
{
    static struct buffer asked;
    if (spare.pid == 0 || action->input.used > 0 || !is_plain(request)) return false;
    setting_of(request, &asked);
    if (!equal(&asked, &spare.setting) || !still_stands(request->cwd)) return false;
    action->result.spawned_ns = now_ns();
    if (!hand_over(request->argv[2])) return false;
    action->pid = spare.pid;
    action->tag = spare.tag;
    action->out.fd = spare.out;
    action->err.fd = spare.err;
    close_ends(false);
    return true;
}

void spare_wish(const struct exec_request *request)
{
    if (is_plain(request)) setting_of(request, &wished);
}

/* Far from the numbers that the shell knows them by. */
static int away(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    close(fd);
    return moved;
}

static pid_t start(const struct exec_request *request, const struct account *account, int wake, int out, int err)
{
    char *argv[] = {"bash", "-c", wrapper, NULL};
    struct not_started why;
    struct spawn how = {
        .argv = argv, .env = request->env, .cwd = request->cwd, .path = request->path, .account = account,
        .limits = request->limits, .limit_count = request->head.limits, .umask = request->head.umask,
        .in = nothing, .out = out, .err = err, .extra = {{wake, WAKE}, {spare.line, LINE}}, .extra_count = 2,
        .tag = spare.tag};
    return spawn(&how, &why);
}

static bool make(struct exec_request *request)
{
    struct account account;
    struct stat status;
    char home[HOME_BYTES + 8];
    int wake = -1, out = -1, err = -1;
    if (!account_find(request->user, &account) || stat(request->cwd, &status) < 0) return false;
    give_home(request, &account, home, sizeof home);
    spare.tag = tag_next();
    spare.device = status.st_dev;
    spare.inode = status.st_ino;
    spare.wake = spare.out = spare.err = -1;
    spare.line = memfd_create("script", MFD_CLOEXEC);
    bool made = spare.line >= 0 && (spare.line = away(spare.line)) >= 0 && pipe_to(&spare.wake, &wake) == 0 &&
                (wake = away(wake)) >= 0 && pipe_from(&spare.out, &out) == 0 && pipe_from(&spare.err, &err) == 0;
    pid_t pid = made ? start(request, &account, wake, out, err) : -1;
    close(wake);
    close(out);
    close(err);
    if (pid < 0) close_ends(true);
    spare.pid = pid > 0 ? pid : 0;
    return pid > 0;
}

void spare_make(void)
{
    struct exec_request request;
    if (wished.used == 0) return;
    if (spare.pid && equal(&wished, &spare.setting)) {
        wished.used = 0;
        return;
    }
    spare_kill();
    struct buffer before = spare.setting;
    spare.setting = wished;
    wished = before;
    wished.used = 0;
    if (request_take(reader_of(spare.setting.data, spare.setting.used), &request) != 0) return;
    make(&request);
    request_free(&request);
}

void spare_kill(void)
{
    if (spare.pid == 0) return;
    kill(spare.pid, SIGKILL);
    close_ends(true);
}

bool spare_is(pid_t pid) { return pid != 0 && pid == spare.pid; }

bool spare_ended(pid_t pid)
{
    if (!spare_is(pid)) return false;
    close_ends(true);
    return true;
}
