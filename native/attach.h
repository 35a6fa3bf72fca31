/* Attaching a process to a cgroup of version 1 waits for a grace period of the kernel, 8 to 10 ms at rest. The option
 * favordynmods (Linux 6.0) takes that away from all hierarchies at once, whichever has it. The unified one gets it: it is
 * there already, and a hierarchy of our own would show in /proc/PID/cgroup of every process of the host, where engines that
 * look each one up among the mounts stumble over it.
 *
 * The option is the host's, so it goes with the last spawner: those that live share the lock of a file that says so.
 */
#ifndef EXCISE_ATTACH_H
#define EXCISE_ATTACH_H

#include <stdbool.h>

/* Have attachments cost microseconds, as long as this process or a child of it lives; true where the kernel can. */
bool attach_hasten(void);

/* Take the option off if we put it on and no spawner is left. After a kill of everything, somebody's sweep does it. */
void attach_settle(void);

#endif
