/* Removal of whole trees, safe against somebody who swaps directories for links meanwhile. */
#ifndef EXCISE_REMOVE_H
#define EXCISE_REMOVE_H

#include <stddef.h>

/* Remove `name` in `parent` (taken over) with all below it. On failure -1 with errno, and where it was. */
int tree_remove(int parent, const char *name, char *where, size_t room);

/* Remove a file, a link or an empty directory. ENOTEMPTY if there is more to do. */
int entry_remove(int parent, const char *name);

#endif
