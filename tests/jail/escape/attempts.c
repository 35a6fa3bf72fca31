/* Attempts to get out of a sandbox, or at the host from within one: `attempts NAME` makes one of them and says what came
 * of it: "held ERRNO" or "escaped WHAT". Exit code 0 means held, 1 escaped, 2 no such attempt.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/if_packet.h>
#include <linux/kexec.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static char argument[4096]; /* what the host tells the attempt: a path, a port, a pid */

static int escaped(const char *what)
{
    printf("escaped %s\n", what);
    return 1;
}

static int held(void)
{
    printf("held %s\n", strerrorname_np(errno));
    return 0;
}

/* A system call that must fail. */
static int refused(long result) { return result < 0 ? held() : escaped("the call was granted"); }

static int unreadable(const char *path)
{
    char data[64];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return held();
    ssize_t got = read(file, data, sizeof data);
    if (got < 0) return held();
    if (got > 0) return escaped(path);
    errno = ENODATA; /* there, and empty */
    return held();
}

static int unwritable(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return held();
    return refused(write(file, text, strlen(text)));
}

static int mount_tmpfs(void) { return refused(mount("none", "/mnt", "tmpfs", 0, NULL)); }
static int mount_proc(void) { return refused(mount("none", "/mnt", "proc", 0, NULL)); }
static int mount_cgroup(void) { return refused(mount("none", "/mnt", "cgroup", 0, "memory")); }
static int bind_mount(void) { return refused(mount("/", "/mnt", NULL, MS_BIND, NULL)); }
static int remount_writable(void) { return refused(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL)); }
static int unmount_cover(void) { return refused(umount2("/proc/sys", MNT_DETACH)); }
static int pivot(void) { return refused(syscall(SYS_pivot_root, "/", "/mnt")); }
static int new_mount(void) { return refused(syscall(SYS_fsopen, "tmpfs", 0)); }
static int clone_tree(void) { return refused(syscall(SYS_open_tree, AT_FDCWD, "/", 1)); }
static int move_tree(void) { return refused(syscall(SYS_move_mount, AT_FDCWD, "/proc/sys", AT_FDCWD, "/mnt", 0)); }
static int change_mount(void)
{
    struct mount_attr none = {.attr_clr = MOUNT_ATTR_RDONLY};
    return refused(syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &none, sizeof none));
}
static int write_programs(void) { return refused(open("/usr/bin/excise-escape", O_WRONLY | O_CREAT, 0755)); }

static int nested_users(void) { return refused(unshare(CLONE_NEWUSER)); }
static int nested_mounts(void) { return refused(unshare(CLONE_NEWNS)); }
static int nested_network(void) { return refused(unshare(CLONE_NEWNET)); }
static int nested_time(void) { return refused(unshare(0x80)); }
static int clone_users(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return refused(child);
}
static int clone_hidden(void)
{
    struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0) _exit(0);
    return refused(child);
}
static int join_mounts(void)
{
    int file = open("/proc/1/ns/mnt", O_RDONLY);
    return file < 0 ? held() : refused(setns(file, 0));
}
static int join_own(void)
{
    int file = open("/proc/self/ns/uts", O_RDONLY);
    return file < 0 ? held() : refused(setns(file, 0));
}

/* The classic way out of chroot: a directory that is held open above the new root. What is found must be our own tree. */
static int chroot_climb(void)
{
    mkdir("/tmp/cell", 0700);
    int top = open("/", O_RDONLY | O_DIRECTORY);
    if (chroot("/tmp/cell") < 0) return held();
    if (fchdir(top) < 0) return held();
    for (int i = 0; i < 100; i++)
        if (chdir("..") < 0) return held();
    if (chroot(".") < 0) return held();
    if (access(argument, F_OK) == 0) return escaped("the host's file was found");
    errno = ENOENT;
    return held();
}
static int root_of_agent(void) { return refused(open("/proc/1/root/etc/hostname", O_RDONLY)); }
static int directory_of_agent(void) { return refused(open("/proc/1/cwd", O_RDONLY | O_DIRECTORY)); }
static int trace_agent(void) { return refused(ptrace(PTRACE_ATTACH, 1, 0, 0)); }
static int seize_agent(void) { return refused(ptrace(PTRACE_SEIZE, 1, 0, 0)); }
static int memory_of_agent(void) { return unreadable("/proc/1/mem"); }
static int map_of_agent(void) { return unreadable("/proc/1/maps"); }
static int words_of_agent(void) { return unreadable("/proc/1/environ"); }
static int read_agent(void)
{
    char data[8];
    struct iovec here = {data, sizeof data}, there = {(void *)0x400000, sizeof data};
    return refused(process_vm_readv(1, &here, 1, &there, 1, 0));
}
static int write_agent(void)
{
    char data[8] = {0};
    struct iovec here = {data, sizeof data}, there = {(void *)0x400000, sizeof data};
    return refused(process_vm_writev(1, &here, 1, &there, 1, 0));
}
static int descriptors_of_agent(void)
{
    DIR *all = opendir("/proc/1/fd");
    if (all == NULL) return held();
    while (readdir(all) != NULL) return escaped("the agent's descriptors are listed");
    return held();
}
static int take_descriptor(void)
{
    int agent = (int)syscall(SYS_pidfd_open, 1, 0);
    return agent < 0 ? held() : refused(syscall(SYS_pidfd_getfd, agent, 3, 0));
}
static int kill_agent(void)
{
    kill(1, SIGKILL); /* granted, and without effect: pid 1 ignores what it has not asked for */
    kill(1, SIGTERM);
    kill(1, SIGSTOP);
    usleep(100000);
    char state[512] = "";
    int file = open("/proc/1/stat", O_RDONLY);
    if (file < 0 || read(file, state, sizeof state - 1) < 0) return held();
    char *at = strrchr(state, ')');
    if (at && (at[2] == 'T' || at[2] == 'Z')) return escaped("the agent is stopped");
    errno = EPERM;
    return held();
}
static int kill_host_process(void) { return refused(kill(atoi(argument), 0)); }
static int see_host_processes(void)
{
    DIR *all = opendir("/proc");
    struct dirent *each;
    int count = 0;
    while (all && (each = readdir(all)) != NULL) count += atoi(each->d_name) > 0;
    errno = ESRCH;
    return count <= 8 ? held() : escaped("processes that are not ours");
}

static int load_kernel(void) { return refused(syscall(SYS_kexec_load, 0, 0, 0, 0)); }
static int load_kernel_file(void) { return refused(syscall(SYS_kexec_file_load, -1, -1, 0, "", 0)); }
static int load_module(void) { return refused(syscall(SYS_init_module, "", 0, "")); }
static int load_module_file(void) { return refused(syscall(SYS_finit_module, 0, "", 0)); }
static int remove_module(void) { return refused(syscall(SYS_delete_module, "none", 0)); }
static int load_bpf(void) { return refused(syscall(SYS_bpf, 0, 0, 0)); }
static int count_events(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .exclude_kernel = 1};
    return refused(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}
static int fault_handler(void) { return refused(syscall(SYS_userfaultfd, O_CLOEXEC | 1)); }
static int add_key(void) { return refused(syscall(SYS_add_key, "user", "excise", "x", 1, KEY_SPEC_SESSION_KEYRING)); }
static int read_keyring(void) { return refused(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0)); }
static int ask_key(void) { return refused(syscall(SYS_request_key, "user", "excise", NULL, KEY_SPEC_SESSION_KEYRING)); }
static int ring(void)
{
    char parameters[256] = {0};
    return refused(syscall(SYS_io_uring_setup, 8, parameters));
}
static int take_all_requests(void)
{
    unsigned long context = 0;
    return refused(syscall(SYS_io_setup, 65536, &context));
}
/* Of no file: the kernel would say so. */
static int flush_disks(void)
{
    if (syscall(SYS_syncfs, -1) < 0) return escaped("the call was made");
    errno = ECANCELED;
    return held();
}
static int watch_files(void) { return refused(syscall(SYS_fanotify_init, 0, 0)); }
static int read_log(void)
{
    char data[64];
    return refused(syscall(SYS_syslog, 3, data, sizeof data));
}
static int restart(void) { return refused(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL)); }
static int swap_on(void) { return refused(swapon("/tmp/swap", 0)); }
static int account(void) { return refused(acct("/tmp/acct")); }
static int quota(void) { return refused(syscall(SYS_quotactl, 0x800000 << 8, "/dev/vda", 0, NULL)); }
static int open_handle(void)
{
    struct {
        struct file_handle head;
        char data[16];
    } handle = {.head = {.handle_bytes = 8, .handle_type = 1}};
    return refused(open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY));
}
static int set_clock(void)
{
    struct timeval then = {1, 0};
    return refused(settimeofday(&then, NULL));
}
static int set_other_clock(void)
{
    struct timespec then = {1, 0};
    return refused(clock_settime(CLOCK_REALTIME, &then));
}
static int tune_clock(void)
{
    struct timex change = {.modes = ADJ_FREQUENCY};
    return refused(adjtimex(&change));
}
static int rename_host(void) { return refused(sethostname("escaped", 7)); }
static int rename_domain(void) { return refused(setdomainname("escaped", 7)); }
static int ports(void) { return refused(syscall(SYS_iopl, 3)); }
static int port_range(void) { return refused(syscall(SYS_ioperm, 0x60, 1, 1)); }
static int segments(void) { return refused(syscall(SYS_modify_ldt, 0, NULL, 0)); }
static int weak_layout(void) { return refused(personality(READ_IMPLIES_EXEC)); }
static int old_table(void)
{
    long result = -ENOSYS;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11"); /* getpid, 32-bit */
    if (result >= 0) return escaped("the 32-bit table answers");
    errno = (int)-result;
    return held();
}
static int other_table(void) { return refused(syscall(0x40000000 + SYS_getpid)); }

static int core_handler(void) { return unwritable("/proc/sys/kernel/core_pattern", "|/tmp/escape"); }
static int magic_key(void) { return unwritable("/proc/sysrq-trigger", "h"); }
static int kernel_knob(void) { return unwritable("/proc/sys/vm/drop_caches", "1"); }
static int forwarding(void) { return unwritable("/proc/sys/net/ipv4/ip_forward", "1"); }
static int helper_program(void) { return unwritable("/sys/kernel/uevent_helper", "/tmp/escape"); }
static int release_agent(void) { return unwritable("/sys/fs/cgroup/memory/release_agent", "/tmp/escape"); }
static int raise_limit(void) { return unwritable("/sys/fs/cgroup/memory/memory.limit_in_bytes", "-1"); }
static int kernel_image(void) { return unreadable("/proc/kcore"); }
static int kernel_keys(void) { return unreadable("/proc/keys"); }
static int timers(void) { return unreadable("/proc/timer_list"); }
static int shadow(void) { return unreadable(argument); }
static int symbols(void)
{
    char line[128] = "";
    FILE *all = fopen("/proc/kallsyms", "r");
    if (all == NULL) return held();
    while (fgets(line, sizeof line, all))
        if (strtoull(line, NULL, 16) != 0) return escaped("addresses of the kernel");
    errno = ENODATA;
    return held();
}
static int memory_device(void) { return refused(open("/dev/mem", O_RDWR)); }
static int disk_device(void) { return refused(open("/dev/vda", O_RDONLY)); }
static int make_memory_device(void) { return refused(mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1))); }
static int make_disk_device(void) { return refused(mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0))); }
static int make_device_in_dev(void) { return refused(mknod("/dev/mem", S_IFCHR | 0600, makedev(1, 1))); }

static int raw_packets(void) { return refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)); }
static int link_packets(void) { return refused(socket(AF_PACKET, SOCK_RAW, 0)); }
static int host_socket(void) { return refused(socket(AF_VSOCK, SOCK_STREAM, 0)); }
static int crypto_socket(void) { return refused(socket(AF_ALG, SOCK_SEQPACKET, 0)); }
static int generic_netlink(void) { return refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)); }
static int odd_protocol(void) { return refused(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)); }
static int odd_type(void) { return refused(socket(AF_INET, SOCK_DCCP, 0)); }
/* The kernel makes two sockets of any kind before it says that there are no pairs of it. */
static int odd_pair(void)
{
    int ends[2];
    if (socketpair(AF_INET, SOCK_STREAM, 0, ends) < 0 && errno == EAFNOSUPPORT) return held();
    return escaped("the kernel tried");
}
static int add_address(void)
{
    struct {
        struct nlmsghdr head;
        struct ifaddrmsg address;
    } request = {{sizeof request, RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0}, {AF_INET, 8, 0, 0, 1}};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    int line = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (line < 0 || send(line, &request, sizeof request, 0) < 0) return held();
    if (recv(line, &answer, sizeof answer, 0) < 0) return held();
    if (answer.error.error == 0) return escaped("an address was added");
    errno = -answer.error.error;
    return held();
}
static int host_service(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int line = socket(AF_INET, SOCK_STREAM, 0);
    return refused(connect(line, (struct sockaddr *)&address, sizeof address));
}
static int abstract_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(argument);
    memcpy(address.sun_path + 1, argument, length);
    int line = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return refused(connect(line, (struct sockaddr *)&address, size));
}
static int low_hardware_address(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = 0};
    int any = socket(AF_INET, SOCK_DGRAM, 0);
    return refused(ioctl(any, SIOCSIFFLAGS, &request));
}

static int gain_capability(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    return refused(syscall(SYS_capset, &head, data));
}
static int gain_privilege(void)
{
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return escaped("programs may gain privileges");
    return refused(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}
static int drop_filter(void) { return refused(prctl(PR_SET_SECCOMP, 0, 0, 0, 0)); }
static int other_ids(void) { return refused(setuid(70000)); }
static int raise_hard_limit(void)
{
    struct rlimit limit = {99, 99};
    return refused(setrlimit(RLIMIT_RTPRIO, &limit));
}
static int dump_core(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return refused(setrlimit(RLIMIT_CORE, &limit));
}
static int jump_the_queue(void)
{
    struct sched_param first = {.sched_priority = 1};
    return refused(sched_setscheduler(0, SCHED_FIFO, &first));
}
static int be_dearer(void)
{
    errno = 0;
    setpriority(PRIO_PROCESS, 0, -5);
    return getpriority(PRIO_PROCESS, 0) < 0 ? escaped("a better priority") : held();
}
static int lock_file_for_good(void)
{
    int flags = FS_IMMUTABLE_FL, file = open("/tmp/immutable", O_RDWR | O_CREAT, 0600);
    return refused(ioctl(file, FS_IOC_SETFLAGS, &flags));
}
static int overlay_attribute(void)
{
    int file = open("/tmp/redirect", O_RDWR | O_CREAT, 0600);
    return refused(fsetxattr(file, "trusted.overlay.redirect", "/etc/shadow", 11, 0));
}
static int type_into_terminal(void)
{
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    return terminal < 0 ? held() : refused(ioctl(terminal, TIOCSTI, "x"));
}
static int paste_into_console(void)
{
    char which = 3;
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    return terminal < 0 ? held() : refused(ioctl(terminal, 0x541c, &which));
}
static int inherited_descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    struct dirent *each;
    while (all && (each = readdir(all)) != NULL)
        if (atoi(each->d_name) > 2 && atoi(each->d_name) != dirfd(all)) return escaped(each->d_name);
    errno = ENOENT;
    return held();
}
static int other_sandbox(void)
{
    char path[4200];
    snprintf(path, sizeof path, "/tmp/%s", argument);
    return refused(open(path, O_RDONLY));
}
static int migrate_memory(void) { return refused(syscall(SYS_migrate_pages, 1, 64, NULL, NULL)); }
static int set_policy(void) { return refused(syscall(SYS_set_mempolicy, 0, NULL, 0)); }
static int hang_up(void) { return refused(vhangup()); }

/* No attempt of its own: takes what it can of what the kernel counts per user, says so, and keeps it. */
static int hoard(void)
{
    int count = 0;
    while (inotify_init1(0) >= 0) count++;
    printf("hoarded %d\n", count);
    fflush(stdout);
    return (int)pause();
}

static const struct {
    const char *name;
    int (*make)(void);
} attempts[] = {
#define A(name) {#name, name}
    A(mount_tmpfs), A(mount_proc), A(mount_cgroup), A(bind_mount), A(remount_writable), A(unmount_cover), A(pivot),
    A(new_mount), A(clone_tree), A(move_tree), A(change_mount), A(write_programs), A(nested_users), A(nested_mounts),
    A(nested_network), A(nested_time), A(clone_users), A(clone_hidden), A(join_mounts), A(join_own), A(chroot_climb),
    A(root_of_agent), A(directory_of_agent), A(trace_agent), A(seize_agent), A(memory_of_agent), A(map_of_agent),
    A(words_of_agent), A(read_agent), A(write_agent), A(descriptors_of_agent), A(take_descriptor), A(kill_agent),
    A(kill_host_process), A(see_host_processes), A(load_kernel), A(load_kernel_file), A(load_module),
    A(load_module_file), A(remove_module), A(load_bpf), A(count_events), A(fault_handler), A(add_key), A(read_keyring),
    A(ask_key), A(ring), A(take_all_requests), A(flush_disks), A(watch_files), A(read_log), A(restart), A(swap_on), A(account), A(quota), A(open_handle),
    A(set_clock), A(set_other_clock), A(tune_clock), A(rename_host), A(rename_domain), A(ports), A(port_range),
    A(segments), A(weak_layout), A(old_table), A(other_table), A(core_handler), A(magic_key), A(kernel_knob),
    A(forwarding), A(helper_program), A(release_agent), A(raise_limit), A(kernel_image), A(kernel_keys), A(timers),
    A(shadow), A(symbols), A(memory_device), A(disk_device), A(make_memory_device), A(make_disk_device),
    A(make_device_in_dev), A(raw_packets), A(link_packets), A(host_socket), A(crypto_socket), A(generic_netlink), A(odd_protocol), A(odd_type),
    A(odd_pair), A(add_address),
    A(host_service), A(abstract_socket), A(low_hardware_address), A(gain_capability), A(gain_privilege),
    A(drop_filter), A(other_ids), A(raise_hard_limit), A(dump_core), A(jump_the_queue), A(be_dearer),
    A(lock_file_for_good), A(overlay_attribute), A(type_into_terminal), A(paste_into_console),
    A(inherited_descriptors), A(other_sandbox), A(migrate_memory), A(set_policy), A(hang_up),
};

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "hoard") == 0) return hoard();
    if (count > 2) snprintf(argument, sizeof argument, "%s", words[2]);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        if (count > 1 && strcmp(words[1], attempts[i].name) == 0) return attempts[i].make();
    for (size_t i = 0; count == 1 && i < sizeof attempts / sizeof *attempts; i++) puts(attempts[i].name);
    return count == 1 ? 0 : 2;
}
