#define _GNU_SOURCE
#include "action.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "answer.h"
#include "launch.h"
#include "link.h"
#include "shell.h"
#include "tree.h"

enum { PIECE = 64 << 10, SEND_UP_TO = 64 << 10 };
enum { STDOUT = 1, STDERR = 2 };

static const uint64_t AGAIN_NS = 1000000, HOPELESS_NS = 10000000000u;

struct action *actions;

struct action *action_find(uint32_t id)
{
    struct action *each = actions;
    while (each && each->id != id) each = each->next;
    return each;
}

struct action *action_tagged(uint64_t tag)
{
    struct action *each = actions;
    while (each && each->tag != tag) each = each->next;
    return each;
}

void action_free(struct action *action)
{
    for (struct action **link = &actions; *link; link = &(*link)->next) {
        if (*link != action) continue;
        *link = action->next;
        break;
    }
    watch_close(&action->in);
    watch_close(&action->out);
    watch_close(&action->err);
    buffer_free(&action->input);
    output_free(&action->kept_out);
    output_free(&action->kept_err);
    free(action);
}

/* What it printed to one stream, once: returns false at the end. */
static bool take_output(struct action *action, struct watch *watch, size_t most)
{
    static unsigned char piece[PIECE];
    uint8_t stream = watch == &action->err ? STDERR : STDOUT;
    ssize_t got = read(watch->fd, piece, most < sizeof piece ? most : sizeof piece);
    if (got < 0) return errno == EAGAIN || errno == EINTR; /* of a terminal: EIO once everybody has left it */
    struct output *kept = stream == STDERR ? &action->kept_err : &action->kept_out;
    if (!action->live) {
        output_add(kept, piece, (size_t)got);
        return got > 0;
    }
    kept->total += (size_t)got;
    action->credit -= got;
    if (got == 0) return false;
    size_t began = frame_begin(&outgoing, OP_OUTPUT, stream, action->id);
    put_bytes(&outgoing, piece, (size_t)got);
    frame_end(&outgoing, began);
    return true;
}

static void on_output(struct watch *watch)
{
    struct action *action = watch->owner;
    bool may = !action->live || action->credit > 0;
    size_t most = action->live && action->credit < PIECE ? (size_t)action->credit : PIECE;
    if (may && !take_output(action, watch, most)) watch_close(watch);
    if (action->live && action->credit <= 0) {
        watch_stop(&action->out);
        watch_stop(&action->err);
    }
}

/* What lies in the pipe now was printed before the command ended; what comes later is not waited for. */
static void take_the_rest(struct action *action, struct watch *watch)
{
    int lies = 0;
    if (watch->fd < 0) return;
    if (ioctl(watch->fd, FIONREAD, &lies) < 0) lies = 0;
    while (lies > 0) {
        uint64_t before = action->kept_out.total + action->kept_err.total;
        if (!take_output(action, watch, (size_t)lies)) break;
        uint64_t took = action->kept_out.total + action->kept_err.total - before;
        if (took == 0) break;
        lies -= (int)took;
    }
}

void action_take_printed(struct action *action)
{
    take_the_rest(action, &action->out);
    take_the_rest(action, &action->err);
}

/* A terminal gives its lines one by one, and is hung up with its last user. */
static void take_the_terminal(struct action *action)
{
    for (uint64_t before = 1, now = 0; action->out.fd >= 0 && before != now;) {
        before = action->kept_out.total;
        if (!take_output(action, &action->out, PIECE)) return;
        now = action->kept_out.total;
    }
}

static void on_input(struct watch *watch)
{
    struct action *action = watch->owner;
    while (action->input_sent < action->input.used) {
        ssize_t put = write(watch->fd, action->input.data + action->input_sent, action->input.used - action->input_sent);
        if (put > 0) {
            action->input_sent += (size_t)put;
            continue;
        }
        if (errno == EAGAIN) {
            watch_start(watch, EPOLLOUT);
            return;
        }
        if (errno != EINTR) break; /* nobody reads it any more */
    }
    watch_stop(watch);
    buffer_free(&action->input);
    action->input_sent = 0;
    if (!action->input_ended) return;
    if (action->flags & EXEC_PTY) return; /* an end of file is a character there, and comes with the input */
    watch_close(watch);
}

void action_feed(struct action *action)
{
    if (action->in.fd >= 0) on_input(&action->in);
}

void action_begin(struct action *action)
{
    action->in.ready = on_input;
    action->out.ready = action->err.ready = on_output;
    action->in.owner = action->out.owner = action->err.owner = action;
    action->next = actions;
    actions = action;
    watch_start(&action->out, EPOLLIN);
    watch_start(&action->err, EPOLLIN);
    if (action->timeout_ns) action->deadline_ns = action->result.spawned_ns + action->timeout_ns;
    action_feed(action);
}

/* All of it is dead, or never will be: answer, unless nobody has asked yet. */
static void conclude(struct action *action)
{
    bool waits_to_be_read = action->flags & EXEC_BACKGROUND && !action->live;
    if (action->flags & EXEC_PTY) take_the_terminal(action);
    else action_take_printed(action);
    watch_close(&action->in);
    if (action->flags & EXEC_PTY) watch_close(&action->out);
    watch_let_go(&action->out);
    watch_let_go(&action->err);
    action->dying = false;
    action->deadline_ns = 0;
    action->exited = true;
    if (action->shell) {
        shell_over(action);
        return;
    }
    if (waits_to_be_read) return;
    answer_result(action->id, &action->result, &action->kept_out, &action->kept_err);
    action_free(action);
    if (outgoing.used >= SEND_UP_TO) link_flush();
}

bool action_ended(pid_t pid, int status, const struct rusage *usage)
{
    struct action *action = actions;
    while (action && (action->pid != pid || action->exited)) action = action->next;
    if (action == NULL) return false;
    uint8_t end = action->result.end;
    action->result.exited_ns = now_ns();
    result_of(&action->result, status, usage);
    if (end == END_TIMEOUT) {
        action->result.end = END_TIMEOUT;
        action->result.code = 128 + SIGKILL;
    }
    action->exited = true;
    if (!action->dying) conclude(action);
    return true;
}

void action_kill(struct action *action)
{
    if (action->dying) return;
    action->dying = true;
    if (!action->exited && action->result.end == END_EXIT) {
        action->result.end = END_SIGNAL; /* unless it still ends by itself */
        action->result.code = 128 + SIGKILL;
    }
    action->hopeless_ns = now_ns() + HOPELESS_NS;
    tree_kill(action->tag);
}

static void tick(struct action *action, uint64_t now)
{
    if (!action->dying && action->deadline_ns && now >= action->deadline_ns) {
        action->result.end = END_TIMEOUT;
        action->result.code = 128 + SIGKILL;
        action_kill(action);
        return;
    }
    if (!action->dying) return;
    if (now >= action->hopeless_ns || (tree_kill(action->tag) == 0 && action->exited)) conclude(action);
}

uint64_t actions_next_ns(void)
{
    uint64_t next = 0;
    for (struct action *each = actions; each; each = each->next) {
        uint64_t wants = each->dying ? now_ns() + AGAIN_NS : each->deadline_ns;
        if (wants && (next == 0 || wants < next)) next = wants;
    }
    return next;
}

void actions_tick(void)
{
    uint64_t now = actions ? now_ns() : 0;
    for (struct action *each = actions, *next; each; each = next) {
        next = each->next;
        tick(each, now);
    }
}

bool actions_are_idle(void)
{
    for (struct action *each = actions; each; each = each->next) {
        bool unheeded = each->flags & EXEC_BACKGROUND && !each->live;
        if (!each->exited && !unheeded && !(each->shell && !shell_is_busy(each))) return false;
    }
    return true;
}

void actions_abandon(void)
{
    for (struct action *each = actions, *next; each; each = next) {
        next = each->next;
        if (each->flags & EXEC_BACKGROUND) {
            each->live = false;
            watch_start(&each->out, EPOLLIN);
            watch_start(&each->err, EPOLLIN);
        } else if (each->shell) {
            tree_kill(each->tag);
            shell_free(each);
        } else {
            action_kill(each);
        }
    }
}

void action_go_live(struct action *action)
{
    action->live = true;
    action->credit = CREDIT_BYTES - (int64_t)(output_kept(&action->kept_out) + output_kept(&action->kept_err));
    answer_output(action->id, STDOUT, &action->kept_out);
    answer_output(action->id, STDERR, &action->kept_err);
    uint64_t out = action->kept_out.total, err = action->kept_err.total;
    output_free(&action->kept_out);
    output_free(&action->kept_err);
    output_start(&action->kept_out, action->output_limit);
    output_start(&action->kept_err, action->output_limit);
    action->kept_out.total = out;
    action->kept_err.total = err;
    if (action->exited) conclude(action);
}

void action_credit(uint32_t id, struct reader body)
{
    struct action *action = action_find(id);
    uint32_t more = take_u32(&body);
    if (action == NULL || body.bad) return;
    action->credit += more;
    if (action->exited || action->credit <= 0) return;
    watch_start(&action->out, EPOLLIN);
    watch_start(&action->err, EPOLLIN);
}

void action_signal(uint32_t id, struct reader body)
{
    struct action *action = action_find(id);
    uint32_t number = take_u32(&body), whole_tree = take_u32(&body);
    if (action == NULL || action->exited || body.bad || number > 64) {
        answer_error(id, body.bad || number > 64 ? EINVAL : ESRCH, "signal");
        return;
    }
    if (whole_tree && number == SIGKILL) action_kill(action);
    else if (whole_tree) tree_signal(action->tag, (int)number);
    else kill(action->pid, (int)number);
    answer_done(id);
}
