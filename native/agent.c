#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "action.h"
#include "answer.h"
#include "files.h"
#include "launch.h"
#include "link.h"
#include "quiet.h"
#include "relay.h"
#include "shell.h"
#include "spare.h"
#include "spawn.h"
#include "thaw.h"
#include "tree.h"

enum { FIRST_FREE = 3 };

/* A client that closes has mostly told the spawner as well, which chooses the time to kill us. */
static const struct timespec grace = {0, 20000000};

static const char FEATURES[] = "exec stream pty background shell spare files environment";
static enum agent_role role;
static struct watch children;

static void hello(uint32_t id, struct reader body)
{
    uint32_t version = take_u32(&body);
    if (body.bad || version != PROTOCOL_VERSION) {
        answer_error(id, EPROTONOSUPPORT, "this agent speaks version 1");
        return;
    }
    size_t began = frame_begin(&outgoing, OP_HELLO, 0, id);
    put_u32(&outgoing, PROTOCOL_VERSION);
    put_u32(&outgoing, (uint32_t)getpid());
    put_u32(&outgoing, role);
    put_text(&outgoing, FEATURES, sizeof FEATURES - 1);
    frame_end(&outgoing, began);
}

static void ping(uint32_t id)
{
    size_t began = frame_begin(&outgoing, OP_PONG, 0, id);
    put_u64(&outgoing, now_ns());
    frame_end(&outgoing, began);
}

/* Where the agent is placed, what the platform gave it is what the platform gives every command there. */
static void environment(uint32_t id)
{
    uint64_t count = 0;
    if (role == ROLE_JAIL) {
        answer_error(id, EPERM, "this environment is not the sandbox's");
        return;
    }
    while (environ[count]) count++;
    size_t began = frame_begin(&outgoing, OP_DATA, 0, id);
    put_u64(&outgoing, count);
    for (uint64_t i = 0; i < count; i++) put_bytes(&outgoing, environ[i], strlen(environ[i]) + 1);
    frame_end(&outgoing, began);
}

static void on_thaw(uint32_t id, struct reader body)
{
    if (role == ROLE_GUEST) thaw(id, body);
    else answer_error(id, EPERM, "this kernel is not the sandbox's");
}

static void on_file_request(uint8_t op, uint8_t flags, uint32_t id, struct reader body)
{
    int answer = files_answer(op, flags, id, body, &outgoing);
    if (answer >= 0 && relay(answer, id) < 0) answer_error(id, ENOMEM, "file operation");
}

static void on_frame(uint8_t op, uint8_t flags, uint32_t id, struct reader body)
{
    switch (op) {
    case OP_HELLO: hello(id, body); break;
    case OP_PING: ping(id); break;
    case OP_EXEC: action_run(id, body); break;
    case OP_STDIN: action_input(id, body, false); break;
    case OP_STDIN_END: action_input(id, body, true); break;
    case OP_SIGNAL: action_signal(id, body); break;
    case OP_RESIZE: action_resize(id, body); break;
    case OP_CREDIT: action_credit(id, body); break;
    case OP_LIST: actions_list(id); break;
    case OP_ATTACH: action_attach(id, body); break;
    case OP_DETACH: action_detach(id, body); break;
    case OP_SHELL_OPEN: shell_open(id, body); break;
    case OP_SHELL_RUN: shell_run(id, body); break;
    case OP_SHELL_CLOSE: shell_close(id, body); break;
    case OP_QUIET: quiet_ask(id, body, role); break;
    case OP_PROCESSES: processes_list(id); break;
    case OP_ENVIRONMENT: environment(id); break;
    case OP_THAW: on_thaw(id, body); break;
    default:
        if (op >= OP_READ && op <= OP_LOOK) on_file_request(op, flags, id, body);
        else answer_error(id, ENOSYS, "this agent does not know that request");
    }
}

/* Everybody who has died: our own children, and in a jail all whose parents went before them. */
static void on_children(struct watch *watch)
{
    struct signalfd_siginfo information;
    struct rusage usage;
    pid_t pid;
    int status;
    if (read(watch->fd, &information, sizeof information) < 0) return;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        if (!action_ended(pid, status, &usage)) spare_ended(pid);
}

/* Descriptors 0 to 2 stand for themselves, so that none of ours is ever one of them. */
static int step_aside(int *fd)
{
    if (*fd > STDERR_FILENO) return fcntl(*fd, F_SETFD, FD_CLOEXEC);
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE);
    if (moved < 0) return -1;
    *fd = moved;
    return 0;
}

static int prepare(void)
{
    sigset_t child;
    if (launches_prepare() < 0) return -1;
    for (int standard = 0; standard < FIRST_FREE; standard++)
        if ((standard < STDERR_FILENO || fcntl(standard, F_GETFD) < 0) && dup2(nothing, standard) < 0) return -1;
    if (nothing < FIRST_FREE && (nothing = fcntl(nothing, F_DUPFD_CLOEXEC, FIRST_FREE)) < 0) return -1;
    spawns_prepare(); /* not before: it must be none of the three */
    signal(SIGPIPE, SIG_IGN);
    if (role == ROLE_PLACED) prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans come to us, and are reaped */
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &child, NULL) < 0 || watches_prepare() < 0) return -1;
    int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) return -1;
    watch_open(&children, signals, on_children, NULL);
    watch_start(&children, EPOLLIN);
    return 0;
}

static void turn(void)
{
    uint64_t next = actions_next_ns(), quiet = quiet_next_ns();
    watches_wait(next == 0 || (quiet && quiet < next) ? quiet : next);
    actions_tick();
    quiet_tick();
    link_flush();
    if (actions_are_idle()) spare_make();
}

int agent_serve(int in, int out, enum agent_role as)
{
    bool one_socket = in == out;
    role = as;
    if (role != ROLE_PLACED) tree_is_ours(role == ROLE_GUEST);
    if (step_aside(&in) < 0) return 1;
    if (one_socket) out = in;
    else if (step_aside(&out) < 0) return 1;
    if (prepare() < 0 || link_start(in, out, on_frame) < 0) return 1;
    while (link_is_open()) turn();
    files_forget();
    if (as == ROLE_PLACED) tree_signal(NO_TAG, SIGKILL);
    else nanosleep(&grace, NULL);
    return 0;
}

/* What the client that is gone wanted to hear is of no use to the next one; what it left in the background is. */
static void on_client(struct watch *watch)
{
    int client = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) return;
    if (link_start(client, client, on_frame) < 0) close(client);
    else watch_stop(watch);
}

int agent_listen(int listener)
{
    static struct watch door;
    role = ROLE_PLACED;
    if (step_aside(&listener) < 0 || prepare() < 0 || fcntl(listener, F_SETFL, O_NONBLOCK) < 0) return 1;
    watch_open(&door, listener, on_client, NULL);
    for (;;) {
        watch_start(&door, EPOLLIN);
        while (!link_is_open()) turn();
        while (link_is_open()) turn();
        files_forget();
        relays_forget();
        actions_abandon();
        quiet_forget();
        link_end();
    }
}
