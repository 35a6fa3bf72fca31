/* OP_EXEC: from what was asked to a command under way. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "account.h"
#include "action.h"
#include "answer.h"
#include "kept.h"
#include "launch.h"
#include "spare.h"
#include "tree.h"

static const uint64_t MILLISECOND_NS = 1000000;

struct action *action_new(uint32_t id, const struct exec_request *request)
{
    struct action *action = calloc(1, sizeof *action);
    if (action == NULL) return NULL;
    const struct exec_head *head = &request->head;
    action->id = id;
    action->flags = head->flags & EXEC_PTY ? (head->flags | EXEC_STREAM) & ~(uint32_t)EXEC_MERGE : head->flags;
    action->tag = tag_next();
    action->in.fd = action->out.fd = action->err.fd = -1;
    action->output_limit = head->output_limit;
    action->timeout_ns = head->timeout_ms * MILLISECOND_NS;
    action->live = action->flags & EXEC_STREAM && !(action->flags & EXEC_BACKGROUND);
    action->credit = CREDIT_BYTES;
    action->input_ended = !(head->flags & EXEC_STDIN_OPEN);
    output_start(&action->kept_out, head->output_limit);
    output_start(&action->kept_err, head->output_limit);
    if (head->flags & EXEC_STDIN_KEPT) kept_take(id, &action->input);
    put_bytes(&action->input, request->input, head->stdin_bytes);
    snprintf(action->words, sizeof action->words, "%s %s", request->argv[0], request->argv[1] ? request->argv[1] : "");
    return action;
}

void action_discard(struct action *action)
{
    buffer_free(&action->input);
    free(action);
}

void action_refuse(struct action *action, const struct not_started *why)
{
    if (why->fault == FAULT_NONE) {
        answer_error(action->id, why->error, "the command's terminal, files or limits");
        return;
    }
    result_not_started(&action->result, why->fault, why->error);
    answer_result(action->id, &action->result, &action->kept_out, &action->kept_err);
}

static void start(struct action *action, struct exec_request *request)
{
    struct account account;
    struct not_started why = {FAULT_NO_USER, ENOENT};
    char home[HOME_BYTES + 8];
    if (!account_find(request->user, &account)) {
        action_refuse(action, &why);
        action_discard(action);
        return;
    }
    if (!spare_take(action, request)) {
        give_home(request, &account, home, sizeof home);
        if (!launch(action, request, &account, &why)) {
            action_refuse(action, &why);
            action_discard(action);
            return;
        }
    }
    if (action->flags & EXEC_BACKGROUND) answer_done(action->id);
    action_begin(action);
}

void action_run(uint32_t id, struct reader body)
{
    uint64_t received = now_ns();
    struct exec_request request;
    int error = id == 0 ? EINVAL : action_find(id) ? EEXIST : request_take(body, &request);
    if (error == 0 && request.head.argc == 0) {
        request_free(&request);
        error = EINVAL;
    }
    if (error) {
        answer_error(id, error, "exec");
        return;
    }
    struct action *action = action_new(id, &request);
    if (action == NULL || action->input.failed) {
        answer_error(id, ENOMEM, "exec");
        if (action) action_discard(action);
    } else {
        action->result.received_ns = received;
        start(action, &request);
        spare_wish(&request);
    }
    request_free(&request);
}

void action_input(uint32_t id, struct reader body, bool end)
{
    struct action *action = action_find(id);
    size_t size;
    const unsigned char *data = take_rest(&body, &size);
    if (action == NULL && end) {
        kept_drop(id);
        return;
    }
    if (action == NULL) {
        int error = kept_add(id, data, size);
        if (error) answer_error(id, error, "stdin");
        return;
    }
    if (action->in.fd < 0) return; /* it has ended, or does not listen any more */
    put_bytes(&action->input, data, size);
    action->input_ended |= end;
    action_feed(action);
}

void action_resize(uint32_t id, struct reader body)
{
    struct action *action = action_find(id);
    struct winsize size = {.ws_row = take_u16(&body), .ws_col = take_u16(&body)};
    if (action && action->flags & EXEC_PTY && action->out.fd >= 0 && !body.bad) ioctl(action->out.fd, TIOCSWINSZ, &size);
}
