/* The name spaces of a jail that can be made before it is known what jail it will be, each as a descriptor. */
#ifndef EXCISE_SPACES_H
#define EXCISE_SPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* In the order in which a jail enters them; its users last of all, when it needs the host's rights no longer. */
enum space { NETWORK, CLOCKS, MESSAGES, NAMES, MOUNTS, USERS, SPACES };

/* The first of the ids that all jails of this spawner use, and how many: 65536 from some high number on, or without root
 * those that we have, from 0 on. */
extern uint32_t first_id, id_count;

/* Find out which of them can be had ahead here. Called before helpers are started. */
void spaces_look(void);
bool space_is_had(enum space kind);

/* Become the process that makes them; `scratch` is a directory to mount upon where nobody else sees it. -1 with errno. */
int spaces_prepare(const char *scratch);

/* One of them, of the `number`th jail; -1 with errno. The network has its loopback up, clocks begin now, and the mounts are
 * an empty directory. */
int space_make(enum space kind, uint32_t number);

/* What the maker is called when it could not. */
const char *space_name(enum space kind);

/* A user name space with the shifted ids that belongs to `owner`. */
int users_make(uid_t owner);

#endif
