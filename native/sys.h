/* System calls that a C library of these years does not wrap, and the constants that its headers may lack. */
#ifndef EXCISE_SYS_H
#define EXCISE_SYS_H

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static inline int sys_fsopen(const char *type) { return (int)syscall(__NR_fsopen, type, FSOPEN_CLOEXEC); }

static inline int sys_fsconfig(int fs, unsigned command, const char *key, const void *value, int aux)
{
    return (int)syscall(__NR_fsconfig, fs, command, key, value, aux);
}

static inline int sys_fsmount(int fs, unsigned attributes)
{
    return (int)syscall(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
}

static inline int sys_fspick(const char *path) { return (int)syscall(__NR_fspick, AT_FDCWD, path, FSPICK_CLOEXEC); }

static inline int sys_open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(__NR_open_tree, dir, path, flags | OPEN_TREE_CLOEXEC);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path)
{
    unsigned flags = *from_path ? 0 : MOVE_MOUNT_F_EMPTY_PATH;
    return (int)syscall(__NR_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_mount_setattr(int dir, unsigned flags, struct mount_attr *attributes)
{
    return (int)syscall(__NR_mount_setattr, dir, "", AT_EMPTY_PATH | flags, attributes, sizeof *attributes);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(__NR_pivot_root, new_root, put_old);
}

static inline int sys_close_range(unsigned first, unsigned last)
{
    return (int)syscall(__NR_close_range, first, last, 0);
}

#endif
