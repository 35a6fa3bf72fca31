/* One program, four places: on the host it spawns jails, in each jail it is the forked first process, in virtual machines
 * of ours it is the first process, and it is placed into containers, pods and guests that somebody else makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include "agent.h"
#include "attach.h"
#include "freeze.h"
#include "guest.h"
#include "spawner.h"
#include "standin.h"

static const char usage[] = "usage: excise-agent --version\n"
                            "       excise-agent agent --stdio | --unix PATH | --vsock PORT | --serial PATH\n"
                            "       excise-agent spawner --control FD --driver PID --lease DIR --first-id N [--subordinate UID:GID]\n"
                            "                            [--mounts attached] [--cgroup KIND:DIR ...]\n"
                            "       excise-agent settle\n"
                            "       excise-agent freeze IMAGE TERMS OBJECT RUN_MAIN SIMPLE_STRING EXIT CODE PROGRAM ARGUMENT...\n";

static int complain(const char *what)
{
    fprintf(stderr, "excise-agent: %s: %s\n", what, strerror(errno));
    return 1;
}

static int serve_each(int listener, const char *what)
{
    if (listener < 0 || listen(listener, 8) < 0) return complain(what);
    return agent_listen(listener);
}

static int serve_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return complain(path);
    }
    strcpy(address.sun_path, path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path); /* of one that was killed */
    if (listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) < 0) return complain(path);
    return serve_each(listener, path);
}

static int serve_vsock(const char *port)
{
    struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = (unsigned)atoi(port)};
    int listener = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) < 0) return complain("vsock");
    return serve_each(listener, "vsock");
}

static int serve_serial(const char *path)
{
    struct termios line;
    int port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (port < 0) return complain(path);
    if (tcgetattr(port, &line) == 0) {
        cfmakeraw(&line);
        if (tcsetattr(port, TCSANOW, &line) < 0) return complain(path);
    }
    return agent_serve(port, port, ROLE_PLACED);
}

static int agent_main(int count, char **words)
{
    signal(SIGPIPE, SIG_IGN);
    if (count == 3 && strcmp(words[2], "--stdio") == 0) return agent_serve(STDIN_FILENO, STDOUT_FILENO, ROLE_PLACED);
    if (count == 4 && strcmp(words[2], "--unix") == 0) return serve_unix(words[3]);
    if (count == 4 && strcmp(words[2], "--vsock") == 0) return serve_vsock(words[3]);
    if (count == 4 && strcmp(words[2], "--serial") == 0) return serve_serial(words[3]);
    fputs(usage, stderr);
    return 2;
}

int main(int count, char **words, char **environment)
{
    if (standin_is_meant()) return standin_main(count, words, environment);
    if (getpid() == 1 && getenv(GUEST_PORT)) return guest_main();
    if (count == 2 && strcmp(words[1], "--version") == 0) return puts("excise-agent " EXCISE_VERSION) < 0;
    if (count >= 2 && strcmp(words[1], "agent") == 0) return agent_main(count, words);
    if (count >= 2 && strcmp(words[1], "spawner") == 0) return spawner_main(count, words);
    if (count == 2 && strcmp(words[1], "settle") == 0) return attach_settle(), 0;
    if (count >= 2 && strcmp(words[1], "freeze") == 0) return freeze_main(count, words);
    fputs(usage, stderr);
    return 2;
}
