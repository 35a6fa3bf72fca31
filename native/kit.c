#define _GNU_SOURCE
#include "kit.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bury.h"
#include "message.h"

enum { IN_CGROUPS = SPACES, IN_START }; /* what failed, besides one of the name spaces */

_Static_assert(MESSAGE_FDS >= HIERARCHY_LIMIT + SPACES, "a kit fits into one message");

/* What comes before the descriptors: the name spaces that can be had, then the cgroups. */
struct kit_head {
    uint32_t number, error, stage;
};

static int owed; /* taken, and no other asked for yet */

static void kit_empty(struct kit *kit, uint32_t number)
{
    kit->number = number;
    memset(kit->spaces, -1, sizeof kit->spaces);
    memset(kit->cgroups, -1, sizeof kit->cgroups);
}

/* 0, or errno, and at which stage. */
static uint32_t make(struct kit *kit, uint32_t *stage)
{
    for (*stage = 0; *stage < SPACES; ++*stage)
        if (space_is_had((enum space)*stage) &&
            (kit->spaces[*stage] = space_make((enum space)*stage, kit->number)) < 0) return (uint32_t)errno;
    return cgroups_make(kit->number, kit->cgroups) < 0 ? (uint32_t)errno : 0;
}

static void make_one(int out, uint32_t number)
{
    struct kit kit;
    struct kit_head head = {.number = number};
    int fds[MESSAGE_FDS], count = 0;
    kit_empty(&kit, number);
    if ((head.error = make(&kit, &head.stage)) == 0) {
        for (int i = 0; i < SPACES; i++)
            if (kit.spaces[i] >= 0) fds[count++] = kit.spaces[i];
        for (int i = 0; i < hierarchy_count; i++) fds[count++] = kit.cgroups[i];
    }
    if (message_send(out, &head, sizeof head, fds, count, 0) < 0) _exit(0);
    kit_close(&kit);
}

static void maker(int line, const char *scratch)
{
    struct kit_head cannot = {.stage = IN_START};
    bool able = spaces_prepare(scratch) == 0;
    cannot.error = able ? 0 : (uint32_t)errno;
    uint32_t number = 0;
    char wish;
    for (;;) {
        ssize_t got = read(line, &wish, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) _exit(0);
        if (able) make_one(line, ++number);
        else if (message_send(line, &cannot, sizeof cannot, NULL, 0, 0) < 0) _exit(0);
    }
}

int kits_start(const char *scratch, const int *unneeded, int count)
{
    int line[2];
    spaces_look();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        close(line[0]);
        for (int i = 0; i < count; i++) close(unneeded[i]);
        prctl(PR_SET_NAME, "excise-kits");
        maker(line[1], scratch);
    }
    close(line[1]);
    owed = STOCK;
    if (child > 0 && kits_ask(line[0]) == 0) return line[0];
    close(line[0]);
    return -1;
}

int kits_owed(void) { return owed; }

bool kits_are_scarce(void) { return STOCK - owed < LEAST; }

int kits_ask(int line)
{
    static const char wishes[STOCK];
    ssize_t put = write(line, wishes, (size_t)owed);
    if (put > 0) owed -= (int)put;
    return put < 0 ? -1 : 0;
}

static const char *stage_name(uint32_t stage)
{
    if (stage < SPACES) return space_name((enum space)stage);
    return stage == IN_CGROUPS ? "cgroup" : "mounts";
}

/* As many as were promised, in their places. */
static bool sort(const struct received *got, struct kit *kit)
{
    int next = 0;
    for (int i = 0; i < SPACES && next < got->count; i++)
        if (space_is_had((enum space)i)) kit->spaces[i] = got->fds[next++];
    for (int i = 0; i < hierarchy_count && next < got->count; i++) kit->cgroups[i] = got->fds[next++];
    int promised = hierarchy_count;
    for (int i = 0; i < SPACES; i++) promised += space_is_had((enum space)i);
    return got->count == promised;
}

int kit_take(int line, struct kit *kit, const char **stage)
{
    struct received got;
    struct kit_head head;
    *stage = "kit";
    if (!message_receive(line, &head, sizeof head, &got)) return -1;
    owed++;
    if (head.error != 0) {
        *stage = stage_name(head.stage);
        errno = (int)head.error;
        return -1;
    }
    kit_empty(kit, head.number);
    if (sort(&got, kit)) return 0;
    kit_close(kit); /* we have no room for more descriptors */
    bury(head.number, -1);
    errno = EMFILE;
    return -1;
}

void kit_close(struct kit *kit)
{
    for (int i = 0; i < SPACES; i++)
        if (kit->spaces[i] >= 0) close(kit->spaces[i]);
    for (int i = 0; i < HIERARCHY_LIMIT; i++)
        if (kit->cgroups[i] >= 0) close(kit->cgroups[i]);
}
