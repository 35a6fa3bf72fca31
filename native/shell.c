/* A shell is an action that reads commands from a pipe: per script one `eval $'...'`, with no input, then its exit code
 * to a pipe of its own, which the script cannot see. A script that ends the shell is answered with the shell's end.
 */
#define _GNU_SOURCE
#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "answer.h"
#include "launch.h"
#include "quote.h"
#include "request.h"
#include "tree.h"

enum { CODE = 199, OUT_OF_THE_WAY = 256 };

static const uint64_t MILLISECOND_NS = 1000000;

struct shell {
    struct watch code; /* the exit codes come out of here, a line each */
    uint32_t running;  /* the id of the script under way, or 0 */
    int status;        /* digits so far */
};

static bool begin(struct action *action, struct exec_request *request, struct not_started *why);

static void answer_script(struct action *action)
{
    uint32_t id = action->shell->running;
    action->shell->running = 0;
    action->deadline_ns = 0;
    answer_result(id, &action->result, &action->kept_out, &action->kept_err);
    output_free(&action->kept_out);
    output_free(&action->kept_err);
}

static void on_code(struct watch *watch)
{
    struct action *action = watch->owner;
    struct shell *shell = action->shell;
    char text[16];
    ssize_t got = read(watch->fd, text, sizeof text);
    if (got == 0) watch_close(watch);
    for (ssize_t i = 0; i < got; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            shell->status = (shell->status * 10 + text[i] - '0') & 0xffff;
            continue;
        }
        action->result.exited_ns = now_ns();
        action->result.code = shell->status & 0xff;
        shell->status = 0;
        if (shell->running == 0 || action->dying) continue;
        action_take_printed(action);
        answer_script(action);
    }
}

void shell_over(struct action *action)
{
    watch_close(&action->shell->code);
    if (action->shell->running) answer_script(action);
}

void shell_open(uint32_t id, struct reader body)
{
    struct exec_request request;
    struct not_started why = {FAULT_NO_ROOM, ENOMEM};
    int error = id == 0 ? EINVAL : action_find(id) ? EEXIST : request_take(body, &request);
    if (error == 0 && request.head.argc != 0) {
        request_free(&request);
        error = EINVAL;
    }
    if (error) {
        answer_error(id, error, "shell");
        return;
    }
    char *bash[] = {"bash", "--noprofile", "--norc", NULL};
    request.argv = bash;
    request.head.flags = 0;
    struct action *action = action_new(id, &request);
    if (action && begin(action, &request, &why)) answer_done(id);
    else {
        answer_error(id, why.error, why.fault == FAULT_MISSING_PROGRAM ? "no bash here" : "the shell could not be started");
        if (action) action_discard(action);
    }
    request_free(&request);
}

static pid_t start(struct action *action, const struct exec_request *request, const struct account *account, int *ends,
    struct not_started *why)
{
    struct spawn how = {
        .argv = request->argv, .env = request->env, .cwd = request->cwd, .path = request->path, .account = account,
        .limits = request->limits, .limit_count = request->head.limits, .umask = request->head.umask,
        .in = ends[0], .out = ends[1], .err = ends[2], .extra = {{ends[3], CODE}}, .extra_count = 1, .tag = action->tag};
    return spawn(&how, why);
}

static bool begin(struct action *action, struct exec_request *request, struct not_started *why)
{
    struct account account;
    char home[HOME_BYTES + 8];
    int ends[4] = {-1, -1, -1, -1}, code = -1;
    *why = (struct not_started){FAULT_NO_USER, ENOENT};
    if (!account_find(request->user, &account)) return false;
    give_home(request, &account, home, sizeof home);
    *why = (struct not_started){FAULT_NO_ROOM, EMFILE};
    action->shell = calloc(1, sizeof *action->shell);
    bool opened = action->shell && pipe_to(&action->in.fd, &ends[0]) == 0 && pipe_from(&action->out.fd, &ends[1]) == 0 &&
                  pipe_from(&action->err.fd, &ends[2]) == 0 && pipe_from(&code, &ends[3]) == 0;
    if (opened) {
        int moved = fcntl(ends[3], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
        close(ends[3]);
        ends[3] = moved;
        action->pid = start(action, request, &account, ends, why);
    }
    for (int i = 0; i < 4; i++)
        if (ends[i] >= 0) close(ends[i]);
    if (opened && action->pid > 0) {
        action->input_ended = false;
        watch_open(&action->shell->code, code, on_code, action);
        watch_start(&action->shell->code, EPOLLIN);
        action_begin(action);
        return true;
    }
    if (code >= 0) close(code);
    watch_close(&action->in);
    watch_close(&action->out);
    watch_close(&action->err);
    free(action->shell);
    return false;
}

void shell_run(uint32_t id, struct reader body)
{
    uint64_t received = now_ns();
    struct action *action = action_find(take_u32(&body));
    uint64_t timeout_ms = take_u32(&body), limit = take_u64(&body);
    struct text script = take_text(&body);
    if (body.bad || id == 0 || action == NULL || !action->shell || action->exited || action->shell->running) {
        int error = body.bad || id == 0 ? EINVAL : action && action->shell && !action->exited ? EBUSY : ESRCH;
        answer_error(id, error, error == EBUSY ? "the shell runs another script" : "no such shell");
        return;
    }
    action_take_printed(action); /* by something in the background: it belongs to no script */
    output_free(&action->kept_out);
    output_free(&action->kept_err);
    output_start(&action->kept_out, limit);
    output_start(&action->kept_err, limit);
    action->shell->running = id;
    action->shell->status = 0;
    action->result = (struct result_head){.received_ns = received, .spawned_ns = now_ns()};
    action->deadline_ns = timeout_ms ? action->result.spawned_ns + timeout_ms * MILLISECOND_NS : 0;
    put_bytes(&action->input, "eval ", 5);
    quote(&action->input, script.at, script.length);
    static const char rest[] = " </dev/null 199>&-\nprintf '%d\\n' \"$?\" >&199\n";
    put_bytes(&action->input, rest, sizeof rest - 1);
    action_feed(action);
}

bool shell_is_busy(const struct action *action) { return action->shell->running != 0; }

void shell_free(struct action *action)
{
    watch_close(&action->shell->code);
    free(action->shell);
    watch_let_go(&action->out);
    watch_let_go(&action->err);
    action_free(action);
}

void shell_close(uint32_t id, struct reader body)
{
    struct action *action = action_find(take_u32(&body));
    if (body.bad || action == NULL || !action->shell) {
        answer_error(id, ESRCH, "no such shell");
        return;
    }
    if (action->shell->running) { /* else it ends by the end of its input, as shells do */
        if (!action->exited) tree_kill(action->tag);
        result_of(&action->result, SIGKILL, &(struct rusage){0});
        answer_script(action);
    }
    shell_free(action);
    answer_done(id);
}
