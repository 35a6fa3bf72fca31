#define _GNU_SOURCE
#include "held.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "sys.h"

bool held_attached;

void held_prepare(void)
{
    struct utsname kernel;
    int major = 0, minor = 0;
    if (uname(&kernel) < 0 || sscanf(kernel.release, "%d.%d", &major, &minor) != 2) return;
    if (major < 6 || (major == 6 && minor < 15)) held_attached = true;
}

void held_path(int tree, char path[HELD_PATH]) { snprintf(path, HELD_PATH, "/held/%d", tree); }

int held_keep(int tree)
{
    char path[HELD_PATH];
    if (tree < 0 || !held_attached) return tree;
    held_path(tree, path);
    if (mkdir(path, 0700) == 0 && sys_move_mount(tree, "", AT_FDCWD, path) == 0) return tree;
    int why = errno;
    rmdir(path);
    close(tree);
    errno = why;
    return -1;
}

int held_copy(int tree)
{
    if (!held_attached) return fcntl(tree, F_DUPFD_CLOEXEC, 3);
    return held_keep(sys_open_tree(tree, "", OPEN_TREE_CLONE | AT_EMPTY_PATH));
}

void held_detach(int tree)
{
    char path[HELD_PATH];
    if (tree < 0 || !held_attached) return;
    held_path(tree, path);
    if (umount2(path, MNT_DETACH) == 0) rmdir(path);
}
