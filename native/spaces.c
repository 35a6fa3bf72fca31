#define _GNU_SOURCE
#include "spaces.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "held.h"
#include "message.h"
#include "sys.h"

uint32_t first_id, id_count = 65536;

static const struct {
    int flag;
    const char *link, *name;
} kinds[SPACES] = {
    [NETWORK] = {CLONE_NEWNET, "self/ns/net", "network name space"},
    [CLOCKS] = {CLONE_NEWTIME, "self/ns/time_for_children", "time name space"},
    [MESSAGES] = {CLONE_NEWIPC, "self/ns/ipc", "ipc name space"},
    [NAMES] = {CLONE_NEWUTS, "self/ns/uts", "uts name space"},
    [MOUNTS] = {CLONE_NEWNS, "self/ns/mnt", "mount name space"},
    [USERS] = {CLONE_NEWUSER, "self/ns/user", "user name space"},
};

static bool had[SPACES];
static int proc = AT_FDCWD;
static int home[SPACES]; /* or the last one made of each would live on with us */

static int open_space(enum space kind) { return openat(proc, kinds[kind].link, O_RDONLY | O_CLOEXEC); }

void spaces_look(void)
{
    for (int i = 0; i < SPACES; i++) had[i] = true;
    had[CLOCKS] = access("/proc/self/timens_offsets", F_OK) == 0;
    had[MOUNTS] = !held_attached; /* else a jail needs a copy of what is held */
}

bool space_is_had(enum space kind) { return had[kind]; }

const char *space_name(enum space kind) { return kinds[kind].name; }

static int write_to(const char *path, const char *text)
{
    int file = openat(proc, path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t put = write(file, text, strlen(text));
    int why = errno;
    close(file);
    errno = why;
    return put < 0 ? -1 : 0;
}

/* Nothing but an empty directory that nobody can write to: what is below the root of every jail, and never reached. */
static int enter_nothing(const char *scratch)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return -1;
    if (mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "mode=555,size=4k") < 0) return -1;
    if (chdir(scratch) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0) return -1;
    return chdir("/");
}

int spaces_prepare(const char *scratch)
{
    if ((proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) return -1;
    if (had[MOUNTS] && enter_nothing(scratch) < 0) return -1;
    for (int i = 0; i < SPACES; i++) home[i] = had[i] ? open_space((enum space)i) : -1;
    return prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0); /* to lend a name space an owner and keep all rights */
}

/* Ports below 1024 and echo requests are for anybody in it, as in other containers. */
static int furnish_network(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0) return -1;
    int done = ioctl(any, SIOCSIFFLAGS, &request);
    close(any);
    char group[32];
    write_to("sys/net/ipv4/ip_unprivileged_port_start", "0");
    snprintf(group, sizeof group, "%u %u", first_id, first_id + id_count - 1);
    write_to("sys/net/ipv4/ping_group_range", group);
    return done;
}

/* How long the host is up is its own business: a jail's clocks begin when they are made, but for that of the day. */
static void set_clocks(void)
{
    static const struct {
        clockid_t clock;
        const char *name;
    } clocks[] = {{CLOCK_MONOTONIC, "monotonic"}, {CLOCK_BOOTTIME, "boottime"}};
    for (int i = 0; i < 2; i++) {
        char offset[64];
        struct timespec now;
        clock_gettime(clocks[i].clock, &now);
        snprintf(offset, sizeof offset, "%s %lld 0\n", clocks[i].name, -(long long)now.tv_sec);
        if (write_to("self/timens_offsets", offset) < 0) return; /* ours do not begin with the host: keep them */
    }
}

static int map_ids(pid_t child)
{
    static const char *const maps[] = {"uid_map", "gid_map"};
    char path[64], map[64];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%d/%s", child, maps[i]);
        if (first_id == 0 && id_count > 1) snprintf(map, sizeof map, "0 0 1\n1 1 %u\n", id_count - 1); /* as we got them */
        else snprintf(map, sizeof map, "0 %u %u", first_id, id_count);
        if (write_to(path, map) < 0) return -1;
    }
    return 0;
}

/* Says what it is in, and waits. */
_Noreturn static void lend_life(int line)
{
    char byte = 0;
    int own = open_space(USERS);
    message_send(line, &byte, 1, &own, own >= 0 ? 1 : 0, 0);
    while (read(line, &byte, 1) < 0 && errno == EINTR) continue;
    _exit(0);
}

/* The name space that the child is in, once its ids are mapped. */
static int users_of(pid_t child, int line)
{
    char byte;
    struct received got;
    if (!message_receive(line, &byte, 1, &got)) return -1;
    if (got.count == 1 && map_ids(child) == 0) return got.fds[0];
    int why = got.count == 1 ? errno : EMFILE;
    if (got.count == 1) close(got.fds[0]);
    errno = why;
    return -1;
}

/* A user name space lives by a process or a descriptor: a child that only waits lends its life until we hold the latter. */
int users_make(uid_t owner)
{
    int line[2], users = -1;
    if (proc == AT_FDCWD && (proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0) return -1;
    pid_t child = seteuid(owner) < 0 ? -1 : (pid_t)syscall(__NR_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        close(line[0]);
        lend_life(line[1]);
    }
    int why = errno;
    close(line[1]);
    if (seteuid(0) < 0) _exit(1);
    errno = why;
    if (child > 0) users = users_of(child, line[0]);
    why = errno;
    close(line[0]);
    if (child > 0) waitpid(child, NULL, 0);
    errno = why;
    return users;
}

/* What the kernel counts for the owner of a user name space besides its users (instances of inotify, locked memory, pending
 * signals ...) is counted for nobody else so: neither for the host's root, nor for another jail. Who owns it may do anything
 * in it, but nobody is that owner on the host. */
static uid_t owner_of(uint32_t number)
{
    static uint32_t somewhere; /* other spawners count as well */
    if (somewhere == 0 && getrandom(&somewhere, sizeof somewhere, GRND_NONBLOCK) < 0) somewhere = (uint32_t)getpid() << 4;
    return first_id ? first_id + (somewhere + number) % id_count : 0;
}

int space_make(enum space kind, uint32_t number)
{
    if (kind == USERS) return users_make(owner_of(number));
    if (unshare(kinds[kind].flag) < 0) return -1;
    if (kind == CLOCKS) set_clocks();
    int made = kind == NETWORK && furnish_network() < 0 ? -1 : open_space(kind);
    int why = errno;
    setns(home[kind], kinds[kind].flag);
    errno = why;
    return made;
}
