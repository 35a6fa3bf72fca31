#define _GNU_SOURCE
#include "quiet.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "action.h"
#include "answer.h"
#include "link.h"
#include "spare.h"
#include "tree.h"
#include "watch.h"

static const uint64_t MILLISECOND_NS = 1000000;

static uint32_t asked; /* the id to answer, or 0 */
static uint64_t hopeless_ns;
static enum agent_role role;

static void count(const struct process *process, void *context)
{
    uint32_t *others = context;
    if (process->pid != getpid() && process->state != 'Z' && process->state != 'X') ++*others;
}

/* In a jail, where we are everybody's parent in the end, whoever is left; elsewhere whatever carries a tag of ours. */
static uint32_t kill_the_rest(void)
{
    uint32_t others = 0;
    if (role == ROLE_PLACED) return (uint32_t)tree_signal(NO_TAG, SIGKILL);
    kill(-1, SIGKILL);
    processes_each(count, &others);
    return others;
}

void quiet_ask(uint32_t id, struct reader body, enum agent_role as)
{
    uint64_t timeout_ms = take_u32(&body);
    if (body.bad || id == 0 || asked) {
        answer_error(id, asked ? EBUSY : EINVAL, "quiet");
        return;
    }
    asked = id;
    role = as;
    hopeless_ns = now_ns() + timeout_ms * MILLISECOND_NS;
    spare_kill();
    kill_the_rest();
}

uint64_t quiet_next_ns(void) { return asked ? now_ns() + MILLISECOND_NS : 0; }

void quiet_forget(void) { asked = 0; }

static bool all_is_answered(void)
{
    for (struct action *each = actions; each; each = each->next)
        if (!each->exited) return false;
    return true;
}

void quiet_tick(void)
{
    if (asked == 0) return;
    uint32_t others = kill_the_rest();
    if (others == 0 && all_is_answered()) answer_done(asked);
    else if (now_ns() >= hopeless_ns) answer_error(asked, EBUSY, "some processes would not die");
    else return;
    asked = 0;
}

static void put_process(const struct process *process, void *context)
{
    uint32_t *listed = context;
    if (spare_is(process->pid)) return; /* ours, like the agent itself: nothing of the sandbox's runs in it yet */
    struct action *action = process->tag == NO_TAG ? NULL : action_tagged(process->tag);
    put_u32(&outgoing, (uint32_t)process->pid);
    put_u32(&outgoing, (uint32_t)process->parent);
    put_u32(&outgoing, action ? action->id : 0);
    put_text(&outgoing, process->name, strlen(process->name));
    ++*listed;
}

void processes_list(uint32_t id)
{
    uint32_t listed = 0;
    size_t began = frame_begin(&outgoing, OP_PROCESS_LIST, 0, id), at = outgoing.used;
    put_u32(&outgoing, 0);
    processes_each(put_process, &listed);
    if (!outgoing.failed) memcpy(outgoing.data + at, &listed, sizeof listed);
    frame_end(&outgoing, began);
}
