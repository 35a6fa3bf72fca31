#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box.h"
#include "bury.h"
#include "floor.h"
#include "held.h"
#include "jail.h"
#include "later.h"
#include "message.h"
#include "outbox.h"
#include "overlay.h"
#include "start.h"
#include "sys.h"

enum { EVENTS = 64 };

static struct start here;
static int events = -1;
static bool floors_are_due;

static void answer_ok(uint32_t tag, int fd)
{
    struct buffer text = {0};
    put_u32(&text, CTL_OK);
    put_u32(&text, tag);
    outbox_post(here.control, &text, fd);
}

static void answer_failed(uint32_t tag, const char *stage)
{
    struct buffer text = {0};
    put_failure(&text, tag, errno, stage);
    outbox_post(here.control, &text, -1);
}

static void answer(uint32_t tag, int done, const char *stage)
{
    if (done < 0) answer_failed(tag, stage);
    else answer_ok(tag, -1);
}

static void hello(uint32_t tag)
{
    struct buffer text = {0};
    put_u32(&text, CTL_OK);
    put_u32(&text, tag);
    put_u32(&text, CONTROL_VERSION);
    put_u32(&text, here.facts);
    outbox_post(here.control, &text, -1);
}

static int watch(int fd, uint32_t what, void *whom)
{
    struct epoll_event event = {.events = what, .data.ptr = whom};
    return epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
}

static void lay_down(uint32_t kit, int upper)
{
    held_detach(upper);
    bury(kit, upper);
}

static int start_box(struct order *order, struct box *box, const char **stage)
{
    *stage = "binds";
    if (stack_hold_binds(order->stack, order->binds) < 0) return -1;
    *stage = "upper";
    int done = floor_take(order->stack, &order->request, &order->floor);
    if (done == 0) {
        *stage = "clone";
        box->upper = order->floor.upper;
        done = jail_make(order, &box->pidfd);
    }
    int why = errno;
    if (order->floor.root >= 0) close(order->floor.root);
    for (int i = 0; i < order->stack->bind_count; i++) close(order->binds[i]);
    errno = why;
    return done < 0 ? -1 : watch(box->pidfd, EPOLLIN, box);
}

static int take_kit(struct kit *kit, const char **stage)
{
    int done = kit_take(here.kits, kit, stage), why = errno;
    if (kits_are_scarce() || (kits_owed() == 1 && !later_add(LATER_KITS, 0, 0, NULL, 0))) kits_ask(here.kits);
    errno = why;
    return done;
}

static int make_box(struct order *order, struct stack *stack, const char **stage)
{
    struct kit kit;
    if (take_kit(&kit, stage) < 0) return -1;
    *stage = "memory";
    order->kit = &kit;
    struct box *box = box_add(order->request.box, kit.number, stack);
    int done = box ? start_box(order, box, stage) : -1, why = errno;
    kit_close(&kit);
    if (done < 0) {
        lay_down(kit.number, box ? box->upper : -1);
        if (box) box_drop(box);
    }
    errno = why;
    return done;
}

static void want_floors(void)
{
    if (!floors_are_due && floors_wanted()) floors_are_due = later_add(LATER_FLOOR, 0, 0, NULL, 0);
}

static void make_floor(void)
{
    floors_are_due = false;
    floors_make();
    want_floors();
}

static void create(uint32_t tag, struct reader *body)
{
    struct order order = {.tag = tag, .control = here.control, .spawner = here.self, .floor = {-1, -1}};
    const char *stage = "request";
    take_bytes(body, &order.request, sizeof order.request);
    bool whole = take_name(body, order.hostname, sizeof order.hostname) && take_name(body, order.cpuset, sizeof order.cpuset);
    struct stack *stack = stack_find(order.request.stack);
    errno = !whole ? EPROTO : box_find(order.request.box) ? EEXIST : stack == NULL ? ENOENT : 0;
    order.stack = stack;
    if (errno != 0 || make_box(&order, stack, &stage) < 0) answer_failed(tag, stage);
    want_floors();
}

static void stack(uint32_t tag, const struct reader *body)
{
    const char *stage;
    int done = stack_add(body->at, body->left, &stage);
    answer(tag, done, stage);
}

static void unstack(uint32_t tag, uint32_t id)
{
    floors_forget(id);
    answer(tag, stack_drop(id), "stack");
}

static void snapshot(uint32_t tag, struct reader *body)
{
    uint32_t id = take_u32(body), name = take_u32(body), grown = take_u32(body);
    struct box *box = box_find(id);
    errno = box == NULL || box->freezes ? ESRCH : snapshot_find(name) >= 0 || stack_find(grown) ? EEXIST : 0;
    if (errno != 0) {
        answer_failed(tag, "snapshot");
        return;
    }
    box->freezes = true;
    box->tag = tag;
    box->snapshot = name;
    box->grown = grown;
    box_kill(box);
}

static void forget(uint32_t tag, uint32_t id)
{
    int upper = snapshot_forget(id);
    answer(tag, upper, "snapshot");
    if (upper >= 0) lay_down(0, upper);
}

static void show(uint32_t tag, int folder, const char *name)
{
    int shown = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shown < 0) answer_failed(tag, "folder");
    else answer_ok(tag, shown);
}

static void show_upper(uint32_t tag, uint32_t id)
{
    struct box *box = box_find(id);
    errno = ESRCH;
    show(tag, box ? box->upper : -1, "upper");
}

static void kill_box(uint32_t id)
{
    struct box *box = box_find(id);
    if (box) box_kill(box);
}

static void begin(const struct later_task *task)
{
    struct reader body = reader_of(task->body, task->size);
    switch (task->kind) {
    case LATER_CREATE: create(task->tag, &body); break;
    case LATER_KILL: kill_box(task->box); break;
    case LATER_KITS: kits_ask(here.kits); break;
    case LATER_FLOOR: make_floor(); break;
    }
}

static void say_gone(uint32_t box, uint32_t kit, int32_t end)
{
    struct buffer text = {0};
    put_u32(&text, CTL_GONE);
    put_u32(&text, 0);
    put_u32(&text, box);
    put_u32(&text, kit);
    put_u32(&text, (uint32_t)end);
    put_u32(&text, kit ? cgroups_oom_kills(kit) : 0);
    outbox_post(here.control, &text, -1);
}

static void destroy(uint32_t id)
{
    if (later_drop(id)) say_gone(id, 0, -SIGKILL);
    else if (!later_add(LATER_KILL, id, 0, NULL, 0)) kill_box(id);
}

static void create_later(uint32_t tag, struct reader body)
{
    struct box_request request;
    uint32_t before = take_u32(&body);
    struct reader whole = body;
    take_bytes(&body, &request, sizeof request);
    if (before) destroy(before);
    if (!later_add(LATER_CREATE, request.box, tag, whole.at, whole.left)) answer_failed(tag, "memory");
}

static void obey(const unsigned char *data, size_t size)
{
    struct reader from = reader_of(data, size);
    uint32_t op = take_u32(&from), tag = take_u32(&from);
    switch (op) {
    case CTL_HELLO: hello(tag); break;
    case CTL_STACK: stack(tag, &from); break;
    case CTL_UNSTACK: unstack(tag, take_u32(&from)); break;
    case CTL_CREATE: create(tag, &from); break;
    case CTL_CREATE_LATER: create_later(tag, from); break;
    case CTL_DESTROY: destroy(take_u32(&from)); break;
    case CTL_SNAPSHOT: snapshot(tag, &from); break;
    case CTL_FORGET: forget(tag, take_u32(&from)); break;
    case CTL_UPPER: show_upper(tag, take_u32(&from)); break;
    case CTL_FROZEN: errno = ENOENT; show(tag, snapshot_find(take_u32(&from)), "."); break;
    default: errno = ENOSYS; answer_failed(tag, "request");
    }
}

/* Dead, and with it the mounts: what it wrote is kept, or let go of. */
static void freeze_or_free(struct box *box)
{
    if (!box->freezes) {
        lay_down(box->kit, box->upper);
        return;
    }
    bool kept = snapshot_keep(box->snapshot, box->upper) == 0;
    int done = kept ? stack_grow(box->grown, box->stack, box->snapshot) : -1;
    answer(box->tag, done, "snapshot");
    if (kept && done < 0) box->upper = snapshot_forget(box->snapshot);
    lay_down(box->kit, done < 0 ? box->upper : -1);
}

static void see_off(struct box *box)
{
    epoll_ctl(events, EPOLL_CTL_DEL, box->pidfd, NULL); /* a jail being made may hold a copy, so closing is not enough */
    say_gone(box->id, box->kit, box_reap(box));
    freeze_or_free(box);
    box_drop(box);
}

/* False at the end. */
static bool listen_to_driver(void)
{
    static unsigned char data[CONTROL_BYTES];
    struct received got;
    if (!message_receive(here.control, data, sizeof data, &got)) return false;
    for (int i = 0; i < got.count; i++) close(got.fds[i]);
    if (got.size >= sizeof(struct control_head)) obey(data, got.size);
    return true;
}

static bool handle(const struct epoll_event *event)
{
    if (event->data.ptr == &here.driver || event->data.ptr == &here.kits || event->data.ptr == &here.burial) return false;
    if (event->data.ptr != &here.control) {
        see_off(event->data.ptr);
        return true;
    }
    if (event->events & EPOLLOUT) outbox_flush(here.control);
    return !(event->events & (EPOLLIN | EPOLLHUP)) || listen_to_driver();
}

static void serve(void)
{
    struct epoll_event came[EVENTS];
    bool writing = false;
    for (;;) {
        if (outbox_waiting() != writing) {
            writing = !writing;
            struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0u), .data.ptr = &here.control};
            epoll_ctl(events, EPOLL_CTL_MOD, here.control, &event);
        }
        int count = epoll_wait(events, came, EVENTS, later_wait_ms());
        for (int i = 0; i < count; i++)
            if (!handle(&came[i])) return;
        later_begin(begin);
    }
}

static void end(void)
{
    for (struct box *box = boxes; box; box = box->next) {
        box->freezes = false;
        box_kill(box);
    }
    while (boxes) see_off(boxes);
    close(here.kits);
    close(here.burial);
    while (wait(NULL) > 0 || errno == EINTR) continue;
}

int spawner_main(int count, char **words)
{
    const char *stage = "arguments";
    if (start(&here, count, words, &stage) < 0 || (events = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        if (here.control > 0) answer_failed(0, stage);
        else fprintf(stderr, "excise-agent: %s: %s\n", stage, strerror(errno));
        return 1;
    }
    if (watch(here.control, EPOLLIN, &here.control) < 0 || watch(here.driver, EPOLLIN, &here.driver) < 0 ||
        watch(here.kits, 0, &here.kits) < 0 || watch(here.burial, 0, &here.burial) < 0)
        return 1; /* what was asked to be seen by 0 is its end only */
    serve();
    end();
    return 0;
}
