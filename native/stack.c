#define _GNU_SOURCE
#include "stack.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "bury.h"
#include "held.h"
#include "kit.h"
#include "message.h"
#include "sys.h"

struct snapshot {
    uint32_t id;
    int upper, directory;
    struct snapshot *next;
};

static struct stack *stacks;
static struct snapshot *snapshots;
static int hosts_mounts = -1, bare_mounts = -1, shifted = -1;

int stacks_prepare(void)
{
    if (first_id && (shifted = users_make(0)) < 0) return -1;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) return -1;
    hosts_mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return hosts_mounts < 0 ? -1 : 0;
}

/* A device of the host: made where we may, else the host's own node shown there. */
static int device(const char *name, unsigned major, unsigned minor)
{
    char path[64], source[64];
    snprintf(path, sizeof path, "dev/%s", name);
    if (first_id && mknod(path, S_IFCHR | 0666, makedev(major, minor)) == 0) return chmod(path, 0666);
    snprintf(source, sizeof source, "/dev/%s", name);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return -1;
    close(file);
    return mount(source, path, NULL, MS_BIND, NULL);
}

static int make_devices(void)
{
    static const struct {
        const char *name;
        unsigned char major, minor;
    } nodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
    static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"}, {"/proc/self/fd/0", "dev/stdin"},
        {"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"}, {"pts/ptmx", "dev/ptmx"}};
    static const char *const folders[] = {"dev", "dev/pts", "dev/shm", "dev/shm/nothing"};
    for (int i = 0; i < 4; i++) {
        if (mkdir(folders[i], 0755) < 0) return -1;
        if (i == 0 && mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0) return -1;
    }
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (device(nodes[i].name, nodes[i].major, nodes[i].minor) < 0) return -1;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlink(links[i][0], links[i][1]) < 0) return -1;
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
    int made = sys_open_tree(AT_FDCWD, "dev", 0);
    if (made < 0) return -1;
    int done = sys_mount_setattr(made, AT_RECURSIVE, &read_only);
    close(made);
    return done;
}

int stacks_enter_bare_tree(const char *scratch)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return -1;
    if (mount("tmpfs", scratch, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") < 0 || chdir(scratch) < 0) return -1;
    if (mkdir("proc", 0755) < 0 || mkdir("new", 0755) < 0 || mkdir("held", 0755) < 0) return -1;
    if (mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) < 0 || make_devices() < 0) return -1;
    if (sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) return -1;
    bare_mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return bare_mounts < 0 ? -1 : 0;
}

static void to_bare_tree(void)
{
    int why = errno;
    if (setns(bare_mounts, CLONE_NEWNS) < 0) _exit(1); /* we would make jails among the host's mounts */
    errno = why;
}

/* What is at `path` on the host, whatever comes to be there later. */
static int find(const char *path)
{
    if (setns(hosts_mounts, CLONE_NEWNS) < 0) return -1;
    int found = open(path, O_PATH | O_CLOEXEC);
    to_bare_tree();
    return found;
}

/* The same as a mount that only we hold, its owners shifted as the jails' are. */
static int hold(int found, uint64_t attributes)
{
    if (setns(hosts_mounts, CLONE_NEWNS) < 0) return -1;
    int tree = sys_open_tree(found, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
    to_bare_tree();
    if (tree < 0) return -1;
    struct mount_attr set = {.attr_set = attributes};
    if (shifted >= 0) {
        set.attr_set |= MOUNT_ATTR_IDMAP;
        set.userns_fd = (uint64_t)shifted;
    }
    if (sys_mount_setattr(tree, 0, &set) == 0) return tree;
    int why = errno;
    close(tree);
    errno = why;
    return -1;
}

static int hold_lower(const char *path)
{
    int found = find(path);
    if (found < 0) return -1;
    int tree = hold(found, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
    int why = errno;
    close(found);
    errno = why;
    return held_keep(tree);
}

int stack_hold_binds(const struct stack *stack, int *mounts)
{
    for (int i = 0; i < stack->bind_count; i++) {
        mounts[i] = hold(stack->binds[i].source, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
        if (mounts[i] >= 0) continue;
        int why = errno;
        while (i-- > 0) close(mounts[i]);
        errno = why;
        return -1;
    }
    return 0;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* A mount of its own, so that the snapshot can be forgotten while stacks have it. */
static int hold_snapshot(uint32_t id)
{
    int directory = snapshot_find(id);
    return directory < 0 ? refuse(ENOENT) : held_keep(sys_open_tree(directory, "", OPEN_TREE_CLONE | AT_EMPTY_PATH));
}

static int take_lower(struct reader *from, uint8_t kind, char *path, size_t room)
{
    if (kind == 0)
        return take_name(from, path, room) ? hold_lower(path) : refuse(EPROTO);
    uint32_t id = take_u32(from);
    snprintf(path, room, "snapshot %u", id);
    return hold_snapshot(id);
}

static int take_bind(struct reader *from, struct bind *bind, char *path, size_t room)
{
    if (!take_name(from, path, room) || !take_name(from, bind->target, sizeof bind->target)) return refuse(EPROTO);
    if (bind->target[0] != '/') return refuse(EINVAL);
    bind->source = find(path);
    return bind->source < 0 ? -1 : 0;
}

static void stack_free(struct stack *stack)
{
    if (stack->boxes > 0 || stack->listed) return;
    for (int i = 0; i < stack->lower_count; i++) {
        held_detach(stack->lowers[i]);
        if (stack->frozen[i] && stack->lowers[i] >= 0) bury(0, stack->lowers[i]);
        else close(stack->lowers[i]);
    }
    for (int i = 0; i < stack->bind_count; i++) close(stack->binds[i].source);
    free(stack);
}

static int fill(struct stack *stack, struct reader *from, const struct stack_request *asked, const char **stage)
{
    static char path[4200]; /* outlives the call: the stage names it */
    for (; stack->lower_count < asked->lowers; stack->lower_count++) {
        uint8_t kind = take_u8(from);
        int lower = take_lower(from, kind, path, sizeof path);
        *stage = path;
        if (lower < 0) return -1;
        stack->lowers[stack->lower_count] = lower;
        stack->frozen[stack->lower_count] = kind;
    }
    for (; stack->bind_count < asked->binds; stack->bind_count++) {
        *stage = path;
        if (take_bind(from, &stack->binds[stack->bind_count], path, sizeof path) < 0) return -1;
    }
    return 0;
}

static int list(struct stack *stack)
{
    stack->next = stacks;
    stack->listed = true;
    stacks = stack;
    return 0;
}

int stack_add(const unsigned char *body, size_t size, const char **stage)
{
    struct reader from = reader_of(body, size);
    struct stack_request asked;
    *stage = "request";
    take_bytes(&from, &asked, sizeof asked);
    if (from.bad || asked.lowers == 0 || asked.lowers > LOWER_LIMIT || asked.binds > BIND_LIMIT) return refuse(EPROTO);
    if (stack_find(asked.stack)) return refuse(EEXIST);
    struct stack *stack = calloc(1, sizeof *stack);
    if (stack == NULL) return -1;
    stack->id = asked.stack;
    if (fill(stack, &from, &asked, stage) < 0) {
        int why = errno;
        stack_free(stack);
        errno = why;
        return -1;
    }
    return list(stack);
}

static int stack_copy(struct stack *to, const struct stack *from)
{
    for (int i = 0; i < from->lower_count; i++) {
        to->frozen[to->lower_count] = from->frozen[i];
        to->lowers[to->lower_count] = held_copy(from->lowers[i]);
        if (to->lowers[to->lower_count++] < 0) return -1;
    }
    for (int i = 0; i < from->bind_count; i++) {
        to->binds[i] = from->binds[i];
        to->bind_count++;
        if ((to->binds[i].source = fcntl(from->binds[i].source, F_DUPFD_CLOEXEC, 3)) < 0) return -1;
    }
    return 0;
}

int stack_grow(uint32_t id, const struct stack *below, uint32_t snapshot)
{
    if (stack_find(id)) return refuse(EEXIST);
    if (below->lower_count == LOWER_LIMIT) return refuse(E2BIG);
    struct stack *stack = calloc(1, sizeof *stack);
    if (stack == NULL) return -1;
    stack->id = id;
    stack->frozen[0] = true;
    stack->lowers[stack->lower_count++] = hold_snapshot(snapshot);
    if (stack->lowers[0] < 0 || stack_copy(stack, below) < 0) {
        int why = errno;
        stack_free(stack);
        errno = why;
        return -1;
    }
    return list(stack);
}

struct stack *stack_find(uint32_t id)
{
    struct stack *each = stacks;
    while (each && each->id != id) each = each->next;
    return each;
}

void stack_release(struct stack *stack)
{
    stack->boxes--;
    stack_free(stack);
}

int stack_drop(uint32_t id)
{
    for (struct stack **link = &stacks; *link; link = &(*link)->next) {
        struct stack *stack = *link;
        if (stack->id != id) continue;
        *link = stack->next;
        stack->listed = false;
        stack_free(stack);
        return 0;
    }
    errno = ENOENT;
    return -1;
}

int snapshot_keep(uint32_t id, int upper)
{
    struct snapshot *snapshot = malloc(sizeof *snapshot);
    if (snapshot == NULL) return -1;
    *snapshot = (struct snapshot){id, upper, openat(upper, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC), snapshots};
    if (snapshot->directory < 0) {
        free(snapshot);
        return -1;
    }
    snapshots = snapshot;
    return 0;
}

int snapshot_find(uint32_t id)
{
    struct snapshot *each = snapshots;
    while (each && each->id != id) each = each->next;
    return each ? each->directory : -1;
}

int snapshot_forget(uint32_t id)
{
    for (struct snapshot **link = &snapshots; *link; link = &(*link)->next) {
        struct snapshot *snapshot = *link;
        if (snapshot->id != id) continue;
        int upper = snapshot->upper;
        *link = snapshot->next;
        close(snapshot->directory);
        free(snapshot);
        return upper;
    }
    errno = ENOENT;
    return -1;
}
