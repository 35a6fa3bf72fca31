/* The commands under way: started, fed, read, timed, ended, each answered once. */
#ifndef EXCISE_ACTION_H
#define EXCISE_ACTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "output.h"
#include "protocol.h"
#include "watch.h"
#include "wire.h"

struct action {
    uint32_t id, flags;
    uint64_t tag;
    pid_t pid;
    struct watch in, out, err;    /* of a terminal: `out` is its other end, and `in` writes to a copy of that */
    struct buffer input;          /* not yet written to its stdin */
    size_t input_sent;
    bool input_ended;
    struct output kept_out, kept_err;
    bool live;                    /* output goes to the client as it comes */
    int64_t credit;               /* how much of it the client still takes; below zero while it has more to take */
    uint64_t output_limit, timeout_ns, deadline_ns, hopeless_ns;
    bool dying;                   /* time was up, or the client gave it up: all of it is being killed */
    bool exited;
    struct result_head result;
    char words[64];
    struct shell *shell;          /* of a persistent shell: what it runs now */
    struct action *next;
};

struct exec_request;
struct not_started;

/* Nothing is started yet. NULL if there is no memory. */
struct action *action_new(uint32_t id, const struct exec_request *request);
void action_discard(struct action *action);

/* Answer that it could not be started. */
void action_refuse(struct action *action, const struct not_started *why);

void action_run(uint32_t id, struct reader body);
void action_input(uint32_t id, struct reader body, bool end);
void action_signal(uint32_t id, struct reader body);
void action_resize(uint32_t id, struct reader body);
void action_credit(uint32_t id, struct reader body);
void actions_list(uint32_t id);
void action_attach(uint32_t id, struct reader body);
void action_detach(uint32_t id, struct reader body);

/* A child has ended: true if it was the leader of an action. */
bool action_ended(pid_t pid, int status, const struct rusage *usage);

/* When `actions_tick` wants to be called next; 0: not for any time. */
uint64_t actions_next_ns(void);
void actions_tick(void);

/* Nobody waits for the end of anything. */
bool actions_are_idle(void);

/* The client is gone: kill what it waited for, keep what runs in the background. */
void actions_abandon(void);

struct action *action_find(uint32_t id);
struct action *action_tagged(uint64_t tag);

/* What its output pipes hold now; what comes later is not waited for. */
void action_take_printed(struct action *action);

/* Write what is left of its input, as far as it is taken now. */
void action_feed(struct action *action);

/* Close and forget it. */
void action_free(struct action *action);

/* Give an action up: kill all of it, answer when it is dead. */
void action_kill(struct action *action);

/* Start, or go on, telling the client what `action` prints. */
void action_go_live(struct action *action);

/* Make `action` one of those under way, with its output pipes to be read. */
void action_begin(struct action *action);

extern struct action *actions;

#endif
