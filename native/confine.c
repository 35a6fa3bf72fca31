/* Three walls that do not need each other: capabilities say what root may do, the system call filter which doors of the
 * kernel exist at all, Landlock that no mount is ever changed, no device node made, no device driven outside /dev, and
 * that signals and abstract sockets stay inside.
 */
#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>

#include "seccomp.h"
#include "sys.h"

/* What root inside an image expects to be able to do, each of it confined to the jail's own ids. */
static const uint64_t KEPT = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER | 1ull << CAP_FSETID |
                             1ull << CAP_KILL | 1ull << CAP_SETGID | 1ull << CAP_SETUID | 1ull << CAP_SETPCAP |
                             1ull << CAP_NET_BIND_SERVICE | 1ull << CAP_SYS_CHROOT | 1ull << CAP_SETFCAP;

enum { MOST_CAPABILITIES = 64, SCOPES_SINCE = 6, IOCTL_SINCE = 5, TRUNCATE_SINCE = 3, REFER_SINCE = 2 };

/* The rights that headers of these years may not know by name. */
enum { REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEVICE = 1 << 15, SCOPE_SOCKETS = 1, SCOPE_SIGNALS = 2 };

struct ruleset {
    uint64_t files, ports, scopes;
};

int landlock_version(void)
{
    int version = (int)syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version < 0 ? 0 : version;
}

int become_inner_root(int users)
{
    if (setns(users, CLONE_NEWUSER) < 0) return -1;
    if (syscall(__NR_setgroups, 0, NULL) < 0 && errno != EPERM) return -1; /* one's own single id: may not, need not */
    if (syscall(__NR_setresgid, 0, 0, 0) < 0) return -1;
    return (int)syscall(__NR_setresuid, 0, 0, 0);
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    for (int each = 0; each < MOST_CAPABILITIES; each++)
        if (!(KEPT >> each & 1) && prctl(PR_CAPBSET_DROP, each, 0, 0, 0) < 0) break; /* past the last one */
    for (int half = 0; half < 2; half++)
        data[half].effective = data[half].permitted = (uint32_t)(KEPT >> 32 * half);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return (int)syscall(__NR_capset, &head, data);
}

static int allow_below(int rules, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent_fd < 0) return -1;
    int done = (int)syscall(__NR_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
    return done;
}

static int landlock(int version)
{
    uint64_t rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                      LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                      LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                      LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM;
    uint64_t devices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
    if (version >= REFER_SINCE) rights |= REFER;
    if (version >= TRUNCATE_SINCE) rights |= TRUNCATE;
    uint64_t drive = version >= IOCTL_SINCE ? IOCTL_DEVICE : 0;
    struct ruleset set = {.files = rights | devices | drive};
    size_t size = sizeof set.files;
    if (version >= SCOPES_SINCE) {
        set.scopes = SCOPE_SOCKETS | SCOPE_SIGNALS;
        size = sizeof set;
    }
    int rules = (int)syscall(__NR_landlock_create_ruleset, &set, size, 0);
    if (rules < 0) return -1;
    int done = allow_below(rules, "/", rights);
    if (done == 0 && drive) done = allow_below(rules, "/dev", rights | drive);
    if (done == 0) done = (int)syscall(__NR_landlock_restrict_self, rules, 0);
    close(rules);
    return done;
}

int confine(const char **stage)
{
    int version = landlock_version();
    *stage = "capabilities";
    if (drop_capabilities() < 0) return -1;
    *stage = "no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
    *stage = "landlock";
    if (version > 0 && landlock(version) < 0) return -1;
    *stage = "seccomp";
    if (seccomp_enter() < 0) return -1;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
