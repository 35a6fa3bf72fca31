/* Becoming root without root: a user name space in which our own id is 0. */
#ifndef EXCISE_SUBORDINATE_H
#define EXCISE_SUBORDINATE_H

#include <stdbool.h>

/* UID:GID: from where on 65535 subordinate ids of /etc/subuid and /etc/subgid are ours too, as 1 to 65535. */
bool subordinate_parse(const char *word);

/* Nothing to do for root. Else 0, or -1 with errno and the stage. */
int subordinate_enter(const char **stage);

#endif
