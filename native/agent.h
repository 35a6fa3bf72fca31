/* The in-sandbox end of the action API: one client, one sandbox. */
#ifndef EXCISE_AGENT_H
#define EXCISE_AGENT_H

#include <stdint.h>

enum agent_role {
    ROLE_JAIL = 1,   /* pid 1 of a jail: reaps everybody, and whoever closes the connection ends the jail */
    ROLE_PLACED = 2, /* a program placed into somebody else's container, pod or guest */
    ROLE_GUEST = 3,  /* pid 1 of a virtual machine: as in a jail, with a kernel of its own that may be thawed */
};

/* Serve the client behind `in` and `out` (one socket, or two ends of something) until it goes away; the exit status. */
int agent_serve(int in, int out, enum agent_role role);

/* As ROLE_PLACED, one client after the other, for ever: what one leaves running in the background the next finds. */
int agent_listen(int listener);

#endif
