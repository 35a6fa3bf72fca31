/* What is left of dead jails is removed by a process of its own, so that nobody waits for it: their cgroups, which the
 * kernel lets go of some time after the last process, and their uppers, whose files are freed one by one.
 */
#ifndef EXCISE_BURY_H
#define EXCISE_BURY_H

#include <stdint.h>

/* Start the process. At the end of the line it returns, dead or not its spawner, it kills whatever is in the cgroups of
 * this lease, removes them, and with them the lease's directory on the host. */
int bury_start(const char *lease, const int *unneeded, int count);

/* The jail of this kit (or 0) is dead: see to its cgroups, and let go of `upper` (or -1), whose files may be many. */
void bury(uint32_t kit, int upper);

#endif
