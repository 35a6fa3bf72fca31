/* Actions that go on without anybody listening: listed, attached, let go of again. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "action.h"
#include "answer.h"
#include "link.h"

void actions_list(uint32_t id)
{
    uint32_t count = 0;
    for (struct action *each = actions; each; each = each->next) count++;
    size_t began = frame_begin(&outgoing, OP_ACTIONS, 0, id);
    put_u32(&outgoing, count);
    for (struct action *each = actions; each; each = each->next) {
        put_u32(&outgoing, each->id);
        put_u32(&outgoing, (uint32_t)each->pid);
        put_u8(&outgoing, each->exited);
        put_u64(&outgoing, each->result.spawned_ns);
        put_text(&outgoing, each->words, strlen(each->words));
    }
    frame_end(&outgoing, began);
}

void action_attach(uint32_t id, struct reader body)
{
    struct action *action = action_find(take_u32(&body));
    if (action == NULL || action->live || !(action->flags & EXEC_BACKGROUND)) {
        answer_error(id, action ? EBUSY : ESRCH, "attach");
        return;
    }
    action_go_live(action);
}

void action_detach(uint32_t id, struct reader body)
{
    struct action *action = action_find(take_u32(&body));
    if (action == NULL || !action->live) {
        answer_error(id, ESRCH, "detach");
        return;
    }
    action->live = false;
    action->flags |= EXEC_BACKGROUND;
    watch_start(&action->out, EPOLLIN);
    watch_start(&action->err, EPOLLIN);
    answer_done(id);
}
