#define _GNU_SOURCE
#include "overlay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "held.h"
#include "kit.h"
#include "sys.h"

enum { OPTIONS = 4096 };

static int set_number(int fs, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

static int mount_of(int fs, unsigned attributes)
{
    int made = sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -1 : sys_fsmount(fs, attributes);
    int why = errno;
    close(fs);
    errno = why;
    return made;
}

static int folder_in(int upper, const char *name, mode_t mode, uid_t uid, gid_t gid)
{
    if (mkdirat(upper, name, 0700) < 0 || fchownat(upper, name, uid, gid, 0) < 0) return -1;
    return fchmodat(upper, name, mode, 0);
}

static int root_in(int upper, int lower)
{
    struct stat root;
    if (fstat(lower, &root) < 0) return -1;
    if (folder_in(upper, "upper", root.st_mode & 07777, root.st_uid, root.st_gid) < 0) return -1;
    const struct timespec times[] = {root.st_atim, root.st_mtim};
    return utimensat(upper, "upper", times, 0);
}

int upper_make(const struct stack *stack, uint64_t bytes, uint64_t inodes)
{
    int fs = sys_fsopen("tmpfs");
    if (fs < 0) return -1;
    if ((bytes && set_number(fs, "size", bytes) < 0) || (inodes && set_number(fs, "nr_inodes", inodes) < 0)) {
        int why = errno;
        close(fs);
        errno = why;
        return -1;
    }
    int upper = mount_of(fs, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
    if (upper < 0) return -1;
    if ((upper = held_keep(upper)) < 0) return -1;
    if (root_in(upper, stack->lowers[0]) == 0 && folder_in(upper, "shm", 01777, first_id, first_id) == 0 &&
        mkdirat(upper, "work", 0700) == 0)
        return upper;
    int why = errno;
    held_detach(upper);
    close(upper);
    errno = why;
    return -1;
}

static int set_folder(int fs, const char *key, int folder)
{
    char path[32];
    if (sys_fsconfig(fs, FSCONFIG_SET_FD, key, NULL, folder) == 0) return 0; /* Linux 6.13 and later */
    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    return sys_fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

static int set_all(int fs, const struct stack *stack, int upper)
{
    for (int i = 0; i < stack->lower_count; i++)
        if (set_folder(fs, "lowerdir+", stack->lowers[i]) < 0) return -1;
    static const char *const parts[][2] = {{"upperdir", "upper"}, {"workdir", "work"}};
    for (int i = 0; i < 2; i++) {
        int folder = openat(upper, parts[i][1], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) return -1;
        int done = set_folder(fs, parts[i][0], folder);
        close(folder);
        if (done < 0) return -1;
    }
    sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0); /* it never outlives us: nothing to sync */
    if (first_id == 0) return sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0);
    return sys_fsconfig(fs, FSCONFIG_SET_STRING, "redirect_dir", "on", 0); /* directories of the image can be renamed */
}

int overlay_make(const struct stack *stack, int upper)
{
    int fs = sys_fsopen("overlay");
    if (fs < 0) return -1;
    if (set_all(fs, stack, upper) == 0) return mount_of(fs, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
    int why = errno;
    close(fs);
    errno = why;
    return -1;
}

/* One line of options, no longer than a page. */
int overlay_attach(const struct stack *stack, int upper, const char *path)
{
    char options[OPTIONS], part[HELD_PATH];
    size_t used = 0;
    for (int i = 0; i < stack->lower_count && used < sizeof options; i++) {
        held_path(stack->lowers[i], part);
        used += (size_t)snprintf(options + used, sizeof options - used, "%s%s", i ? ":" : "lowerdir=", part);
    }
    held_path(upper, part);
    const char *renames = first_id ? "redirect_dir=on" : "userxattr";
    if (used < sizeof options)
        used += (size_t)snprintf(options + used, sizeof options - used, ",upperdir=%s/upper,workdir=%s/work,volatile,%s",
                                 part, part, renames);
    if (used >= sizeof options) {
        errno = E2BIG;
        return -1;
    }
    return mount("overlay", path, "overlay", MS_NODEV | MS_NOSUID, options);
}

int upper_part(int upper, const char *name)
{
    char path[HELD_PATH + 16];
    if (!held_attached) return sys_open_tree(upper, name, OPEN_TREE_CLONE);
    held_path(upper, path);
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "/%s", name);
    return sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE);
}
