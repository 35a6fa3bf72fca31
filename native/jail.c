/* The order matters: cgroups first, so that whatever follows is counted; what is mounted is made while we are still the
 * host's root and moved into place once nothing but the jail's own tree is left, so that a link in an image can lead
 * nowhere else; then we become root of the jail's ids only, which own none of its name spaces: what was mounted, named or
 * wired stays as it is.
 */
#define _GNU_SOURCE
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "confine.h"
#include "message.h"
#include "overlay.h"
#include "spawn.h"
#include "sys.h"

enum { AGENT_END = 3, CLIENT_END = 4, CONTROL = 5, SCORE = 6, TERMINALS = 256, TERMINAL_GROUP = 5, PATH = 512 };

struct mounts {
    int root, proc, devices, terminals, shm;
};

static struct rlimit own_files;
static char *own_words;
static size_t own_words_size;
static int driver; /* where the child answers to */

/* Files of /proc that are open to everybody on the host and are nobody's business in a jail. What only the host's root may
 * read is closed to a jail's root already. */
static const char *const masked[] = {
    "/proc/acpi", "/proc/asound", "/proc/key-users", "/proc/keys", "/proc/kallsyms", "/proc/latency_stats", "/proc/scsi",
    "/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats", "/proc/sysrq-trigger", "/proc/kcore"};
enum { MASKED = sizeof masked / sizeof *masked };
static bool covers[MASKED], folders[MASKED];

int jails_prepare(char *words, size_t size)
{
    own_words = words;
    own_words_size = size;
    for (int i = 0; i < MASKED; i++) {
        struct stat file;
        if (stat(masked[i], &file) < 0) continue;
        covers[i] = file.st_mode & 0007;
        folders[i] = S_ISDIR(file.st_mode);
    }
    if (getrlimit(RLIMIT_NOFILE, &own_files) < 0) return -1;
    struct rlimit all = {own_files.rlim_max, own_files.rlim_max}; /* the spawner holds a few for each jail */
    return setrlimit(RLIMIT_NOFILE, &all);
}

static int mount_new(const char *type, const char *const (*options)[2], int count, unsigned attributes)
{
    int fs = sys_fsopen(type), made = -1;
    if (fs < 0) return -1;
    int done = 0;
    for (int i = 0; i < count && done == 0; i++)
        done = sys_fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0);
    if (done == 0 && sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) made = sys_fsmount(fs, attributes);
    int why = errno;
    close(fs);
    errno = why;
    return made;
}

static int make_terminals(void)
{
    char group[24], most[24];
    snprintf(group, sizeof group, "%u", id_count > TERMINAL_GROUP ? first_id + TERMINAL_GROUP : first_id);
    snprintf(most, sizeof most, "%u", TERMINALS);
    const char *const options[][2] = {{"mode", "620"}, {"ptmxmode", "666"}, {"gid", group}, {"max", most}};
    return mount_new("devpts", options, 4, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

static int make_mounts(const struct order *order, struct mounts *made, const char **stage)
{
    *stage = "overlay";
    bool ahead = order->kit->spaces[MOUNTS] >= 0;
    int upper = order->floor.upper;
    if (order->floor.root >= 0) made->root = order->floor.root;
    else made->root = ahead ? overlay_make(order->stack, upper) : overlay_attach(order->stack, upper, "/new");
    if (made->root < 0) return -1;
    *stage = "proc";
    if ((made->proc = mount_new("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)) < 0) return -1;
    *stage = "devices";
    if ((made->devices = sys_open_tree(AT_FDCWD, "/dev", OPEN_TREE_CLONE | AT_RECURSIVE)) < 0) return -1;
    *stage = "terminals";
    if ((made->terminals = make_terminals()) < 0) return -1;
    *stage = "shm";
    made->shm = upper_part(upper, "shm");
    return made->shm < 0 ? -1 : 0;
}

/* Mounts that were made ahead are an empty directory: our root comes to lie on it, and nothing leads below. Otherwise we
 * have a copy of the spawner's, and must be rid of it: the kernel then looks at every process there is for its root, and
 * waits for all processors. */
static int enter_root(const struct order *order, const struct mounts *made, const char **stage)
{
    int ahead = order->kit->spaces[MOUNTS];
    *stage = "root";
    if (ahead < 0) {
        if (chdir("/new") < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0) return -1;
    } else {
        if (setns(ahead, CLONE_NEWNS) < 0 || sys_move_mount(made->root, "", AT_FDCWD, "/") < 0) return -1;
        if (fchdir(made->root) < 0 || chroot(".") < 0) return -1;
    }
    return chdir("/");
}

/* Nearly always it is there, and an overlay finds that out sooner if it is not first made ready to be written to. */
static int make_folder(const char *path, mode_t mode)
{
    struct stat there;
    if (lstat(path, &there) == 0) return 0;
    if (mkdir(path, mode) < 0) return errno == EEXIST ? 0 : -1;
    return chmod(path, mode) < 0 ? -1 : chown(path, first_id, first_id);
}

/* Something to mount upon: what the image has, or what is made for it. */
static int make_target(const char *path, bool folder)
{
    char part[PATH];
    struct stat there;
    if (stat(path, &there) == 0) return 0;
    snprintf(part, sizeof part, "%s", path);
    for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        if (make_folder(part, 0755) < 0) return -1;
        *at = '/';
    }
    if (folder) return make_folder(path, 0755);
    int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) return -1;
    int done = fchown(file, first_id, first_id);
    close(file);
    return done;
}

static int cover_proc(void)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    int settings = sys_open_tree(AT_FDCWD, "/proc/sys", OPEN_TREE_CLONE);
    if (settings < 0 || sys_mount_setattr(settings, 0, &read_only) < 0) return -1;
    if (sys_move_mount(settings, "", AT_FDCWD, "/proc/sys") < 0) return -1;
    for (int i = 0; i < MASKED; i++) {
        if (!covers[i]) continue;
        int nothing = sys_open_tree(AT_FDCWD, folders[i] ? "/dev/shm/nothing" : "/dev/null", OPEN_TREE_CLONE);
        if (nothing < 0 || sys_move_mount(nothing, "", AT_FDCWD, masked[i]) < 0) return -1;
    }
    return 0;
}

static int place_mounts(const struct order *order, const struct mounts *made, const char **stage)
{
    *stage = "proc";
    if (make_folder("/proc", 0555) < 0 || sys_move_mount(made->proc, "", AT_FDCWD, "/proc") < 0) return -1;
    *stage = "devices";
    if (make_folder("/dev", 0755) < 0 || sys_move_mount(made->devices, "", AT_FDCWD, "/dev") < 0) return -1;
    if (cover_proc() < 0) return -1;
    *stage = "terminals";
    if (sys_move_mount(made->terminals, "", AT_FDCWD, "/dev/pts") < 0) return -1;
    *stage = "shm";
    if (sys_move_mount(made->shm, "", AT_FDCWD, "/dev/shm") < 0) return -1;
    *stage = "tmp";
    if (make_folder("/tmp", 01777) < 0) return -1;
    for (int i = 0; i < order->stack->bind_count; i++) {
        const struct bind *bind = &order->stack->binds[i];
        struct stat what;
        *stage = bind->target;
        if (fstat(bind->source, &what) < 0 || make_target(bind->target, S_ISDIR(what.st_mode)) < 0) return -1;
        if (sys_move_mount(order->binds[i], "", AT_FDCWD, bind->target) < 0) return -1;
    }
    return 0;
}

/* Without a cgroup for it, the nearest thing: per process for memory, per jail for processes. */
static int limit_resources(const struct box_request *request)
{
    struct rlimit none = {1, 1}, files = own_files; /* of 1 byte: 0 would still call a host's program that takes cores */
    if (request->open_files) files.rlim_cur = files.rlim_max = request->open_files;
    if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NOFILE, &files) < 0) return -1;
    bool unified = hierarchy_of(UNIFIED) >= 0;
    struct rlimit memory = {request->memory_bytes, request->memory_bytes}, pids = {request->pids, request->pids};
    if (request->memory_bytes && !unified && hierarchy_of(MEMORY) < 0 && setrlimit(RLIMIT_AS, &memory) < 0) return -1;
    if (request->pids && !unified && hierarchy_of(PIDS) < 0 && setrlimit(RLIMIT_NPROC, &pids) < 0) return -1;
    return 0;
}

/* Die with the spawner, which may have died before this was in force. */
static int die_with(int spawner)
{
    struct pollfd dead = {spawner, POLLIN, 0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) return -1;
    if (poll(&dead, 1, 0) == 0) return 0;
    errno = ESRCH;
    return -1;
}

/* Nothing open but the agent's socket, the client's end of it, the way to say so, and what spawns need; nothing on 0, 1 and 2. */
static int sort_descriptors(int control)
{
    int line[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) < 0) return -1;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return -1;
    int kept[] = {nothing, nothing, nothing, line[0], line[1], control, spawns_score};
    int count = spawns_score < 0 ? SCORE : SCORE + 1;
    for (int i = 0; i < count; i++) /* out of the way of what they will become */
        if ((kept[i] = fcntl(kept[i], F_DUPFD_CLOEXEC, SCORE + 1)) < 0) return -1;
    driver = CONTROL;
    for (int i = 0; i < count; i++)
        if (dup3(kept[i], i, i > 2 ? O_CLOEXEC : 0) < 0) return -1;
    if (spawns_score >= 0) spawns_score = SCORE;
    return sys_close_range((unsigned)count, ~0u);
}

static int settle(const struct order *order, const char **stage)
{
    struct mounts made;
    *stage = "cgroup";
    if (cgroups_enter(order->kit->cgroups, &order->request, order->cpuset, stage) < 0) return -1;
    *stage = "name spaces";
    if (hierarchy_count > 0 && unshare(CLONE_NEWCGROUP) < 0) return -1;
    for (int i = 0; i < MOUNTS; i++)
        if (order->kit->spaces[i] >= 0 && setns(order->kit->spaces[i], 0) < 0) return -1;
    *stage = "hostname";
    if (sethostname(order->hostname, strlen(order->hostname)) < 0) return -1;
    if (make_mounts(order, &made, stage) < 0 || enter_root(order, &made, stage) < 0) return -1;
    if (place_mounts(order, &made, stage) < 0) return -1;
    *stage = "resource limits";
    if (limit_resources(&order->request) < 0) return -1;
    *stage = "user";
    if (become_inner_root(order->kit->spaces[USERS]) < 0) return -1;
    *stage = "spawner";
    if (die_with(order->spawner) < 0) return -1;
    *stage = "descriptors";
    if (sort_descriptors(order->control) < 0) return -1;
    return confine(stage);
}

/* Our number as the host's /proc has it: in our own name space we are 1. */
static uint32_t number_outside(void)
{
    char text[16];
    ssize_t length = readlink("/proc/self", text, sizeof text - 1);
    if (length < 0) return 0;
    text[length] = 0;
    return (uint32_t)atoi(text);
}

static void answer_created(const struct order *order, uint32_t pid)
{
    uint32_t body[] = {CTL_CREATED, order->tag, pid, order->kit->number};
    int client = CLIENT_END;
    if (message_send(CONTROL, body, sizeof body, &client, 1, 0) < 0) _exit(1);
    close(CLIENT_END);
    close(CONTROL);
}

static void answer_failed(const struct order *order, const char *stage)
{
    struct buffer answer = {0};
    put_failure(&answer, order->tag, errno, stage);
    if (!answer.failed) message_send(driver, answer.data, answer.used, NULL, 0, 0);
}

_Noreturn static void live(const struct order *order)
{
    const char *stage = "start";
    uint32_t pid = number_outside();
    driver = order->control;
    memset(own_words, 0, own_words_size); /* /proc/1/cmdline is open to all, and names paths of the host */
    snprintf(own_words, own_words_size, "excise-agent");
    prctl(PR_SET_NAME, "excise-agent");
    umask(022);
    setsid();
    spawns_prepare();
    if (settle(order, &stage) < 0) {
        answer_failed(order, stage);
        _exit(1);
    }
    answer_created(order, pid);
    _exit(agent_serve(AGENT_END, AGENT_END, ROLE_JAIL));
}

pid_t jail_make(const struct order *order, int *pidfd)
{
    int fd = -1, unified = hierarchy_of(UNIFIED);
    struct clone_args how = {
        .flags = CLONE_NEWPID | CLONE_PIDFD | (order->kit->spaces[MOUNTS] < 0 ? CLONE_NEWNS : 0u),
        .pidfd = (uint64_t)(uintptr_t)&fd,
        .exit_signal = SIGCHLD,
    };
    if (unified >= 0) {
        how.flags |= CLONE_INTO_CGROUP;
        how.cgroup = (uint64_t)order->kit->cgroups[unified];
    }
    pid_t child = (pid_t)syscall(__NR_clone3, &how, sizeof how);
    if (child == 0) live(order);
    *pidfd = fd;
    return child;
}
