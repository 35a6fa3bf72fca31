#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys.h"

struct hierarchy hierarchies[HIERARCHY_LIMIT];
int hierarchy_count;

enum { PERIOD_US = 100000, TEXT = 128 };

bool hierarchy_add(const char *word)
{
    static const char *const kinds[] = {"memory:", "pids:", "cpu:", "cpuset:", "freezer:", "unified:"};
    if (hierarchy_count == HIERARCHY_LIMIT) return false;
    for (int kind = MEMORY; kind <= UNIFIED; kind++) {
        size_t length = strlen(kinds[kind]);
        if (strncmp(word, kinds[kind], length) != 0) continue;
        int parent = open(word + length, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        hierarchies[hierarchy_count] = (struct hierarchy){(enum controller)kind, parent, word + length};
        hierarchy_count++;
        return parent >= 0;
    }
    return false;
}

int hierarchy_of(enum controller kind)
{
    int at = hierarchy_count - 1;
    while (at >= 0 && hierarchies[at].kind != kind) at--;
    return at;
}

static void name_of(char *name, size_t size, uint32_t number) { snprintf(name, size, "box-%u", number); }

int cgroups_make(uint32_t number, int *directories)
{
    char name[TEXT];
    name_of(name, sizeof name, number);
    for (int i = 0; i < hierarchy_count; i++) {
        int parent = hierarchies[i].parent;
        if (mkdirat(parent, name, 0755) == 0) directories[i] = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directories[i] >= 0) continue;
        int why = errno;
        cgroups_remove(number);
        errno = why;
        return -1;
    }
    return 0;
}

bool cgroups_remove(uint32_t number)
{
    char name[TEXT];
    bool gone = true;
    name_of(name, sizeof name, number);
    for (int i = 0; i < hierarchy_count; i++)
        if (unlinkat(hierarchies[i].parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENODEV) gone = false;
    return gone;
}

static int put(int directory, const char *file, const char *text)
{
    int to = openat(directory, file, O_WRONLY | O_CLOEXEC);
    if (to < 0) return -1;
    ssize_t done = write(to, text, strlen(text));
    int why = errno;
    close(to);
    errno = why;
    return done < 0 ? -1 : 0;
}

void cgroups_thaw(uint32_t number)
{
    char file[TEXT];
    int freezer = hierarchy_of(FREEZER);
    snprintf(file, sizeof file, "box-%u/freezer.state", number);
    if (freezer >= 0) put(hierarchies[freezer].parent, file, "THAWED"); /* it may be gone: then there is nothing to thaw */
}

uint32_t cgroups_oom_kills(uint32_t number)
{
    char file[TEXT], text[1024];
    int unified = hierarchy_of(UNIFIED), at = unified >= 0 ? unified : hierarchy_of(MEMORY);
    if (at < 0) return 0;
    snprintf(file, sizeof file, "box-%u/%s", number, unified >= 0 ? "memory.events" : "memory.oom_control");
    int from = openat(hierarchies[at].parent, file, O_RDONLY | O_CLOEXEC);
    if (from < 0) return 0;
    ssize_t got = read(from, text, sizeof text - 1);
    close(from);
    text[got > 0 ? got : 0] = 0;
    const char *count = strstr(text, "oom_kill ");
    return count ? (uint32_t)strtoul(count + strlen("oom_kill "), NULL, 10) : 0;
}

static int put_number(int directory, const char *file, uint64_t value, const char **stage)
{
    char text[TEXT];
    *stage = file;
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return put(directory, file, text);
}

static int limit_memory(int directory, uint64_t bytes, const char **stage)
{
    if (put_number(directory, "memory.limit_in_bytes", bytes, stage) < 0) return -1;
    /* memory and swap together: without it a jail would grow into the swap. Absent where swap is not accounted for. */
    return put_number(directory, "memory.memsw.limit_in_bytes", bytes, stage) < 0 && errno != ENOENT ? -1 : 0;
}

/* Version 1 takes nobody in before both are filled; an empty list of memory nodes means: those of the parent. */
static int limit_cpuset(int directory, const char *cpus, const char **stage)
{
    char nodes[TEXT];
    *stage = "cpuset.mems";
    int from = openat(directory, "../cpuset.mems", O_RDONLY | O_CLOEXEC);
    if (from < 0) return -1;
    ssize_t got = read(from, nodes, sizeof nodes - 1);
    close(from);
    if (got < 0) return -1;
    nodes[got] = 0;
    if (put(directory, "cpuset.mems", nodes) < 0) return -1;
    *stage = "cpuset.cpus";
    return put(directory, "cpuset.cpus", cpus);
}

static int limit_unified(int directory, const struct box_request *limits, const char *cpuset, const char **stage)
{
    char text[TEXT];
    if (limits->memory_bytes) {
        if (put_number(directory, "memory.max", limits->memory_bytes, stage) < 0) return -1;
        if (put_number(directory, "memory.swap.max", 0, stage) < 0 && errno != ENOENT) return -1;
    }
    if (limits->pids && put_number(directory, "pids.max", limits->pids, stage) < 0) return -1;
    if (limits->cpu_quota_us) {
        *stage = "cpu.max";
        snprintf(text, sizeof text, "%u %u", limits->cpu_quota_us, PERIOD_US);
        if (put(directory, *stage, text) < 0) return -1;
    }
    if (*cpuset == 0) return 0;
    *stage = "cpuset.cpus";
    return put(directory, *stage, cpuset);
}

static int limit(enum controller kind, int directory, const struct box_request *limits, const char *cpuset,
                 const char **stage)
{
    switch (kind) {
    case MEMORY: return limits->memory_bytes ? limit_memory(directory, limits->memory_bytes, stage) : 0;
    case PIDS: return limits->pids ? put_number(directory, "pids.max", limits->pids, stage) : 0;
    case CPU: return limits->cpu_quota_us ? put_number(directory, "cpu.cfs_quota_us", limits->cpu_quota_us, stage) : 0;
    case CPUSET: return limit_cpuset(directory, cpuset, stage);
    case UNIFIED: return limit_unified(directory, limits, cpuset, stage);
    case FREEZER: break;
    }
    return 0;
}

int cgroups_enter(const int *directories, const struct box_request *limits, const char *cpuset, const char **stage)
{
    for (int i = 0; i < hierarchy_count; i++) {
        enum controller kind = hierarchies[i].kind;
        if (kind == CPUSET && *cpuset == 0) continue; /* stay where our parent is */
        if (limit(kind, directories[i], limits, cpuset, stage) < 0) return -1;
        *stage = "cgroup.procs";
        if (kind != UNIFIED && put(directories[i], *stage, "0") < 0) return -1; /* there: born inside */
    }
    return 0;
}
