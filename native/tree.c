#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* 'x' above 24 bits of the agent's pid above 32 bits of a number: far from any limit that somebody would set. */
static const uint64_t MARK = 0x78ull << 56;

static uint64_t own_tags(void) { return MARK | ((uint64_t)getpid() & 0xffffff) << 32; }

static bool is_own(uint64_t tag) { return tag >> 32 == own_tags() >> 32; }

static uint32_t last = UINT32_MAX;

uint64_t tag_next(void) { return own_tags() | --last; }

int tag_put_on(uint64_t tag)
{
    struct rlimit limit = {tag, tag};
    if (setrlimit(RLIMIT_LOCKS, &limit) == 0) return 0;
    return setrlimit(RLIMIT_RSS, &limit);
}

static uint64_t tag_of_row(const char *limits, size_t size, const char *row)
{
    size_t length = strlen(row);
    const char *at = memmem(limits, size, row, length);
    if (at == NULL) return NO_TAG;
    const char *end = limits + size;
    uint64_t value = 0;
    for (at += length; at < end && *at == ' '; at++) continue;
    for (; at < end && *at >= '0' && *at <= '9'; at++) value = value * 10 + (uint64_t)(*at - '0');
    return value >> 56 == MARK >> 56 ? value : NO_TAG;
}

uint64_t tag_in(const char *limits, size_t size)
{
    uint64_t tag = tag_of_row(limits, size, "Max file locks");
    return tag == NO_TAG ? tag_of_row(limits, size, "Max resident set") : tag;
}

static size_t read_in(int folder, const char *pid, const char *name, char *into, size_t room)
{
    char path[48];
    snprintf(path, sizeof path, "%s/%s", pid, name);
    int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t got = read(file, into, room - 1);
    close(file);
    if (got <= 0) return 0;
    into[got] = 0;
    return (size_t)got;
}

bool process_in(char *text, struct process *process)
{
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open || strlen(close) < 5) return false;
    process->pid = (pid_t)atoi(text);
    process->state = close[2];
    process->parent = (pid_t)atoi(close + 4);
    *close = 0;
    snprintf(process->name, sizeof process->name, "%s", open + 1);
    return true;
}

static bool look_at(int folder, const char *pid, struct process *process)
{
    char text[2048];
    if (read_in(folder, pid, "stat", text, sizeof text) == 0 || !process_in(text, process)) return false;
    size_t size = read_in(folder, pid, "limits", text, sizeof text);
    process->tag = tag_in(text, size);
    return true;
}

static bool is_ours, has_kernel;

void tree_is_ours(bool with_kernel)
{
    is_ours = true;
    has_kernel = with_kernel;
}

/* All of the kernel's threads are children of the second process. */
static bool is_of_kernel(const struct process *process)
{
    enum { KTHREADD = 2 };
    return has_kernel && (process->pid == KTHREADD || process->parent == KTHREADD);
}

void processes_each(void (*each)(const struct process *process, void *context), void *context)
{
    DIR *all = opendir("/proc");
    if (all == NULL) return;
    struct dirent *entry;
    while ((entry = readdir(all)) != NULL) {
        struct process process;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        if (look_at(dirfd(all), entry->d_name, &process) && !is_of_kernel(&process)) each(&process, context);
    }
    closedir(all);
}

struct volley {
    uint64_t tag;
    int signal, hit;
    bool also_changed;
};

static bool changed(const struct process *process)
{
    return is_own(process->tag) ? process->tag < (own_tags() | last) : is_ours;
}

static void shoot(const struct process *process, void *context)
{
    struct volley *volley = context;
    bool meant = volley->tag == NO_TAG ? is_own(process->tag) : process->tag == volley->tag;
    if (volley->also_changed) meant |= changed(process);
    if (!meant || process->state == 'Z' || process->state == 'X' || process->pid == getpid()) return;
    if (kill(process->pid, volley->signal) == 0) volley->hit++;
}

int tree_signal(uint64_t tag, int signal)
{
    struct volley volley = {.tag = tag, .signal = signal};
    processes_each(shoot, &volley);
    return volley.hit;
}

int tree_kill(uint64_t tag)
{
    struct volley volley = {.tag = tag, .signal = SIGKILL, .also_changed = true};
    processes_each(shoot, &volley);
    return volley.hit;
}
