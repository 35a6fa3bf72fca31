/* The first process of a virtual machine: brings up what commands need, then is its agent on a serial port. */
#ifndef EXCISE_GUEST_H
#define EXCISE_GUEST_H

/* Unknown NAME=VALUE words of a kernel's command line come to its first process as variables. */
#define GUEST_PORT "excise_port" /* the serial port's device; that it is named makes the first process ours */
#define GUEST_ROOT "excise_root" /* the disk's; for a network card also excise_address and excise_gateway; excise_tasks
                                    limits processes */

/* When the agent's client is gone the machine is switched off, and so it is where something is missing, with the reason on
 * the console. */
int guest_main(void);

#endif
