#define _GNU_SOURCE
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tree.h"

/* Everything below runs in the child, in our memory, while we stand still: plain system calls only. */

static void give_up(struct not_started *why, enum fault fault)
{
    why->fault = fault;
    why->error = errno;
    _exit(127);
}

static bool set_limits(const struct spawn *spawn)
{
    for (int i = 0; i < spawn->limit_count; i++) {
        struct rlimit limit = {spawn->limits[i].soft, spawn->limits[i].hard};
        if (setrlimit((int)spawn->limits[i].resource, &limit) < 0) return false;
    }
    return true;
}

static bool become(const struct account *account)
{
    if (account->own) return true;
    if (syscall(__NR_setgroups, account->group_count, account->groups) < 0) return false;
    if (syscall(__NR_setresgid, account->gid, account->gid, account->gid) < 0) return false;
    return syscall(__NR_setresuid, account->uid, account->uid, account->uid) == 0;
}

static bool set_files(const struct spawn *spawn)
{
    if (dup2(spawn->in, 0) < 0 || dup2(spawn->out, 1) < 0 || dup2(spawn->err, 2) < 0) return false;
    for (int i = 0; i < spawn->extra_count; i++)
        if (dup2(spawn->extra[i].from, spawn->extra[i].to) < 0) return false;
    return true;
}

static void exec_along_path(const struct spawn *spawn)
{
    const char *name = spawn->argv[0];
    size_t length = strlen(name);
    char file[PATH_MAX];
    int seen = ENOENT;
    for (const char *at = spawn->path; length > 0;) {
        size_t folder = strcspn(at, ":");
        if (folder + length + 2 <= sizeof file) {
            memcpy(file, at, folder);
            file[folder] = '/';
            memcpy(file + folder + (folder > 0), name, length + 1); /* an empty folder is the current one */
            execve(file, spawn->argv, spawn->env);
            if (errno != ENOENT && errno != ENOTDIR && seen == ENOENT) seen = errno;
            if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
        }
        if (at[folder] == 0) break;
        at += folder + 1;
    }
    errno = seen;
}

static void run_program(const struct spawn *spawn)
{
    if (strchr(spawn->argv[0], '/')) execve(spawn->argv[0], spawn->argv, spawn->env);
    else exec_along_path(spawn);
}

static void be_the_program(const struct spawn *spawn, struct not_started *why)
{
    setsid();
    if (spawn->terminal && ioctl(spawn->in, TIOCSCTTY, 0) < 0) give_up(why, FAULT_NONE);
    if (!set_files(spawn)) give_up(why, FAULT_NONE);
    tag_put_on(spawn->tag);
    umask(spawn->umask);
    if (!set_limits(spawn)) give_up(why, FAULT_NONE);
    if (!become(spawn->account)) give_up(why, FAULT_NO_USER);
    if (chdir(spawn->cwd) < 0) give_up(why, FAULT_MISSING_CWD);
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    run_program(spawn);
    if (errno == ENOENT || errno == ENOTDIR) give_up(why, FAULT_MISSING_PROGRAM);
    if (errno == EAGAIN || errno == ENOMEM) give_up(why, FAULT_NO_ROOM);
    give_up(why, FAULT_NOT_EXECUTABLE);
}

/* The kernel should kill what eats the memory, and not the agent, which holds what was printed. A child cannot say so
 * itself, being as closed to itself as the agent is, and to say it of each costs a walk through /proc; but it inherits what
 * its parent is at that moment. */
int spawns_score = -1;
static char usual[8];
static const char OFTEN[] = "300";

void spawns_prepare(void)
{
    if (spawns_score >= 0) return;
    if ((spawns_score = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC)) < 0) return;
    if (read(spawns_score, usual, sizeof usual - 1) > 0) return;
    close(spawns_score);
    spawns_score = -1;
}

static void have_score(const char *score)
{
    if (spawns_score >= 0 && pwrite(spawns_score, score, strlen(score), 0) < 0) errno = 0; /* then as the kernel likes */
}

pid_t spawn(const struct spawn *spawn, struct not_started *why)
{
    *why = (struct not_started){FAULT_NONE, 0};
    volatile struct not_started *shared = why; /* the child writes it behind the compiler's back */
    have_score(OFTEN);
    pid_t child = vfork();
    if (child == 0) be_the_program(spawn, why);
    int error = errno;
    have_score(usual);
    if (child < 0) {
        why->fault = FAULT_NO_ROOM;
        why->error = error;
        return -1;
    }
    if (shared->error == 0) return child;
    int status;
    while (syscall(__NR_wait4, child, &status, 0, NULL) < 0 && errno == EINTR) continue;
    return -1;
}
