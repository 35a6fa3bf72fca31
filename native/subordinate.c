#define _GNU_SOURCE
#include "subordinate.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { MORE = 65535, NUMBER = 16 };

static unsigned first_uid, first_gid;

bool subordinate_parse(const char *word) { return sscanf(word, "%u:%u", &first_uid, &first_gid) == 2; }

static int put(const char *path, const char *text)
{
    int to = open(path, O_WRONLY | O_CLOEXEC);
    if (to < 0) return -1;
    ssize_t done = write(to, text, strlen(text));
    int why = errno;
    close(to);
    errno = why;
    return done < 0 ? -1 : 0;
}

static int map_one(unsigned uid, unsigned gid)
{
    char map[48];
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (put("/proc/self/uid_map", map) < 0) return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    return put("/proc/self/setgroups", "deny") < 0 ? -1 : put("/proc/self/gid_map", map);
}

/* Only the system's own programs may give somebody more ids than his own: they are asked to, once we are inside. */
_Noreturn static void ask(const char *program, pid_t whom, unsigned own, unsigned first, int begin)
{
    char words[4][NUMBER], byte;
    snprintf(words[0], NUMBER, "%d", whom);
    snprintf(words[1], NUMBER, "%u", own);
    snprintf(words[2], NUMBER, "%u", first);
    snprintf(words[3], NUMBER, "%u", MORE);
    while (read(begin, &byte, 1) < 0 && errno == EINTR) continue;
    execlp(program, program, words[0], "0", words[1], "1", "1", words[2], words[3], (char *)NULL);
    _exit(127);
}

static int map_many(const int *begin, const pid_t *children)
{
    int failed = 0, status;
    close(begin[1]);
    for (int i = 0; i < 2; i++)
        if (waitpid(children[i], &status, 0) < 0 || status != 0) failed = 1;
    if (failed) errno = EPERM;
    return failed ? -1 : 0;
}

int subordinate_enter(const char **stage)
{
    unsigned uid = geteuid(), gid = getegid();
    pid_t whom = getpid(), children[2];
    int begin[2];
    if (uid == 0) return 0;
    first_id = 0;
    id_count = first_uid ? MORE + 1 : 1;
    *stage = "user name space";
    if (first_uid == 0) {
        if (unshare(CLONE_NEWUSER) < 0) return -1;
        *stage = "id map";
        return map_one(uid, gid);
    }
    if (pipe2(begin, O_CLOEXEC) < 0) return -1;
    for (int i = 0; i < 2; i++) {
        if ((children[i] = fork()) < 0) return -1;
        if (children[i] > 0) continue;
        close(begin[1]);
        ask(i ? "newgidmap" : "newuidmap", whom, i ? gid : uid, i ? first_gid : first_uid, begin[0]);
    }
    close(begin[0]);
    if (unshare(CLONE_NEWUSER) < 0) return -1;
    *stage = "subordinate ids";
    return map_many(begin, children);
}
