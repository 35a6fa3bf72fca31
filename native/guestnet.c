#define _GNU_SOURCE
#include "guestnet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <net/route.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char CARD[] = "eth0";

/* False if it is no address. */
static int put_address(struct sockaddr *into, const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    memcpy(into, &address, sizeof address);
    return 0;
}

static int switch_on(int control, const char *card)
{
    struct ifreq wanted = {.ifr_flags = IFF_UP | IFF_RUNNING};
    strcpy(wanted.ifr_name, card);
    return ioctl(control, SIOCSIFFLAGS, &wanted);
}

static int give(int control, unsigned long what, const char *address)
{
    struct ifreq wanted = {0};
    strcpy(wanted.ifr_name, CARD);
    return put_address(&wanted.ifr_addr, address) < 0 ? -1 : ioctl(control, what, &wanted);
}

static int route_by(int control, const char *gateway)
{
    struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
    if (put_address(&route.rt_gateway, gateway) < 0 || put_address(&route.rt_dst, "0.0.0.0") < 0 ||
        put_address(&route.rt_genmask, "0.0.0.0") < 0)
        return -1;
    return ioctl(control, SIOCADDRT, &route);
}

int network_up(const char *address, const char *gateway)
{
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0) return -1;
    int done = switch_on(control, "lo");
    if (done == 0 && address)
        done = give(control, SIOCSIFADDR, address) < 0 || give(control, SIOCSIFNETMASK, "255.255.255.0") < 0 ||
                       switch_on(control, CARD) < 0 || route_by(control, gateway) < 0
                   ? -1
                   : 0;
    close(control);
    return done;
}
