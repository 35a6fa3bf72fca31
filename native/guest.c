/* We are /init of an initial file system that holds nothing but us and the kernel's modules, in /modules under names that
 * sort in the order in which they are to be loaded. */
#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "guestnet.h"
#include "link.h"

enum { APPEARS_MS = 10000, LOOK_MS = 2 };

/* Said once on the port as soon as it is ours: before that a terminal driver may have eaten or echoed what came. */
static const char READY[] = "excise-guest 1\n";

static const struct filesystem {
    const char *type, *at, *options;
    unsigned mode;
    unsigned long flags;
} FILESYSTEMS[] = {
    {"proc", "/proc", NULL, 0555, MS_NOSUID | MS_NODEV | MS_NOEXEC},
    {"sysfs", "/sys", NULL, 0555, MS_NOSUID | MS_NODEV | MS_NOEXEC},
    {"devpts", "/dev/pts", "mode=620,gid=5,ptmxmode=666", 0755, MS_NOSUID | MS_NOEXEC},
    {"tmpfs", "/dev/shm", "mode=1777", 01777, MS_NOSUID | MS_NODEV},
    {"tmpfs", "/run", "mode=755", 0755, MS_NOSUID | MS_NODEV},
};

static const char *const LINKS[][2] = {
    {"/proc/self/fd", "/dev/fd"},
    {"/proc/self/fd/0", "/dev/stdin"},
    {"/proc/self/fd/1", "/dev/stdout"},
    {"/proc/self/fd/2", "/dev/stderr"},
};

static int complain(const char *what)
{
    fprintf(stderr, "excise-guest: %s: %s\n", what, strerror(errno));
    return -1;
}

static int load(const char *module)
{
    int file = open(module, O_RDONLY | O_CLOEXEC);
    if (file < 0) return complain(module);
    long done = syscall(SYS_finit_module, file, "", 0);
    close(file);
    return done == 0 || errno == EEXIST ? 0 : complain(module);
}

static int is_a_module(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int load_modules(void)
{
    struct dirent **all;
    int failed = 0, count = scandir("/modules", &all, is_a_module, alphasort);
    for (int i = 0; i < count; i++) {
        char path[sizeof "/modules/" + sizeof all[i]->d_name];
        snprintf(path, sizeof path, "/modules/%s", all[i]->d_name);
        failed |= load(path);
        free(all[i]);
    }
    if (count >= 0) free(all);
    return failed;
}

/* Devices are found by the kernel beside us. */
static int until_there(const char *device)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    for (int waited = 0; access(device, F_OK) < 0; waited += LOOK_MS) {
        if (waited >= APPEARS_MS) return complain(device);
        nanosleep(&look, NULL);
    }
    return 0;
}

static int mount_root(const char *device)
{
    mkdir("/root", 0755);
    if (until_there(device) < 0) return -1;
    if (mount(device, "/root", "ext4", MS_NOATIME, "noinit_itable") < 0) return complain(device);
    mkdir("/root/dev", 0755);
    if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) < 0) return complain("/dev");
    if (chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        return complain("the root");
    return 0;
}

static int mount_the_rest(void)
{
    for (size_t i = 0; i < sizeof FILESYSTEMS / sizeof *FILESYSTEMS; i++) {
        const struct filesystem *each = &FILESYSTEMS[i];
        mkdir(each->at, each->mode);
        if (mount(each->type, each->at, each->type, each->flags, each->options) < 0) return complain(each->at);
    }
    for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++)
        if (symlink(LINKS[i][0], LINKS[i][1]) < 0 && errno != EEXIST) return complain(LINKS[i][1]);
    return 0;
}

/* So many processes and threads beside the kernel's own and us. */
static int limit_tasks(const char *most)
{
    struct dirent *entry;
    char text[24];
    int tasks = most ? atoi(most) : 0;
    DIR *all = tasks > 0 ? opendir("/proc") : NULL;
    if (all == NULL) return tasks > 0 ? -1 : 0;
    while ((entry = readdir(all)) != NULL) tasks += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
    closedir(all);
    int limit = open("/proc/sys/kernel/threads-max", O_WRONLY | O_CLOEXEC);
    int size = snprintf(text, sizeof text, "%d\n", tasks);
    bool done = limit >= 0 && write(limit, text, (size_t)size) == size;
    if (limit >= 0) close(limit);
    return done ? 0 : -1;
}

static int open_port(const char *path)
{
    struct termios line;
    if (until_there(path) < 0) return -1;
    int port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (port < 0) return complain(path);
    if (tcgetattr(port, &line) == 0) {
        cfmakeraw(&line);
        if (tcsetattr(port, TCSANOW, &line) < 0) return complain(path);
        link_tells();
    }
    if (write(port, READY, sizeof READY - 1) != sizeof READY - 1) return complain(path);
    return port;
}

/* What the kernel's command line said of us came as variables; commands get none of that, nor the kernel's own. */
static int settle_environment(void)
{
    if (clearenv() != 0) return -1;
    return setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1) < 0 ||
                   setenv("LANG", "C.UTF-8", 1) < 0
               ? -1
               : 0;
}

static int bring_up(void)
{
    const char *root = getenv(GUEST_ROOT), *address = getenv("excise_address"), *gateway = getenv("excise_gateway");
    if (root == NULL || (address == NULL) != (gateway == NULL)) {
        errno = EINVAL;
        return complain(GUEST_ROOT);
    }
    mkdir("/dev", 0755);
    if (mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755") < 0 && errno != EBUSY) return complain("/dev");
    if (load_modules() < 0 || mount_root(root) < 0 || mount_the_rest() < 0) return -1;
    if (sethostname("guest", 5) < 0) return complain("hostname");
    if (network_up(address, gateway) < 0) return complain("network");
    if (limit_tasks(getenv("excise_tasks")) < 0) return complain("threads-max");
    return open_port(getenv(GUEST_PORT));
}

int guest_main(void)
{
    int port = bring_up();
    if (port >= 0 && settle_environment() == 0) agent_serve(port, port, ROLE_GUEST);
    reboot(RB_POWER_OFF);
    return 1;
}
