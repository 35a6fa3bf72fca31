/* The network of a virtual machine: its loopback, and one card with a fixed address. */
#ifndef EXCISE_GUESTNET_H
#define EXCISE_GUESTNET_H

/* Without an address only the loopback comes up. 0, or -1 with errno. */
int network_up(const char *address, const char *gateway);

#endif
