#define _GNU_SOURCE
#include "bury.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "cgroup.h"
#include "message.h"

enum { RETRY_MS = 20, RETRIES = 500, PATH = 4400 };

struct grave {
    uint32_t kit, tries;
};

static struct grave *graves;
static int way = -1; /* to the process */
static size_t grave_count, grave_room;

static void dig(uint32_t kit)
{
    if (grave_count == grave_room) {
        size_t room = grave_room ? 2 * grave_room : 64;
        struct grave *grown = reallocarray(graves, room, sizeof *graves);
        if (grown == NULL) return; /* found again at the end of the line */
        graves = grown;
        grave_room = room;
    }
    graves[grave_count++] = (struct grave){kit, 0};
}

/* What the kernel still holds is tried again later, and in the end left to `clear_lease`. */
static void fill_graves(void)
{
    for (size_t i = 0; i < grave_count;) {
        if (cgroups_remove(graves[i].kit) || ++graves[i].tries > RETRIES) graves[i] = graves[--grave_count];
        else i++;
    }
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void serve(int line)
{
    uint64_t next = 0;
    for (;;) {
        struct pollfd ready = {line, POLLIN, 0};
        poll(&ready, 1, grave_count > 0 ? RETRY_MS : -1);
        if (ready.revents) {
            uint32_t kit;
            struct received got;
            if (!message_receive(line, &kit, sizeof kit, &got)) return;
            for (int i = 0; i < got.count; i++) close(got.fds[i]);
            if (kit) dig(kit);
        }
        if (now_ms() < next) continue;
        fill_graves();
        next = now_ms() + RETRY_MS;
    }
}

static void kill_all(const char *box)
{
    char path[PATH], line[32];
    snprintf(path, sizeof path, "%.4200s/cgroup.procs", box);
    FILE *list = fopen(path, "re");
    if (list == NULL) return;
    while (fgets(line, sizeof line, list)) {
        int pid = atoi(line);
        if (pid > 0) kill(pid, SIGKILL); /* 0: of a name space we do not see into */
    }
    fclose(list);
}

static void clear_box(const char *parent, const char *name, enum controller kind)
{
    char box[PATH];
    uint32_t number = (uint32_t)strtoul(name + 4, NULL, 10);
    if (kind == FREEZER) cgroups_thaw(number);
    snprintf(box, sizeof box, "%.4000s/%.200s", parent, name);
    kill_all(box);
    rmdir(box);
}

/* True once no cgroup of the lease is left. */
static bool clear_cgroups(void)
{
    bool gone = true;
    for (int i = 0; i < hierarchy_count; i++) {
        const char *path = hierarchies[i].path;
        DIR *boxes = opendir(path);
        if (boxes == NULL) continue;
        for (struct dirent *each; (each = readdir(boxes));)
            if (strncmp(each->d_name, "box-", 4) == 0) clear_box(path, each->d_name, hierarchies[i].kind);
        closedir(boxes);
        if (rmdir(path) < 0 && errno != ENOENT) gone = false;
    }
    return gone;
}

static void clear_lease(const char *lease)
{
    static const char *const parts[] = {"scratch", "cgroups", "lock"};
    char path[PATH];
    const struct timespec pause = {0, RETRY_MS * 1000000};
    for (int tries = 0; !clear_cgroups(); tries++) {
        if (tries == RETRIES) return; /* a sweep finds it */
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%.4000s/%s", lease, parts[i]);
        remove(path);
    }
    rmdir(lease);
}

int bury_start(const char *lease, const int *unneeded, int count)
{
    int line[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        close(line[0]);
        for (int i = 0; i < count; i++) close(unneeded[i]);
        prctl(PR_SET_NAME, "excise-burial");
        serve(line[1]);
        clear_lease(lease);
        attach_settle();
        _exit(0);
    }
    close(line[1]);
    if (child > 0) return way = line[0];
    close(line[0]);
    return -1;
}

void bury(uint32_t kit, int upper)
{
    message_send(way, &kit, sizeof kit, &upper, upper >= 0 ? 1 : 0, 0);
    if (upper >= 0) close(upper);
}
