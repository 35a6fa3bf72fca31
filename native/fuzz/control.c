/* CTL_STACK bodies, without mounts: lowers that are snapshots are found, paths are not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "stack.h"

enum { KEPT = 1 };

static void keep_one(void)
{
    char place[] = "/tmp/excise-fuzz-XXXXXX";
    must(mkdtemp(place) != NULL);
    int upper = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(upper >= 0 && mkdirat(upper, "upper", 0700) == 0 && snapshot_keep(KEPT, upper) == 0);
    unlinkat(upper, "upper", AT_REMOVEDIR); /* what is open stays */
    rmdir(place);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int snapshots;
    const char *stage = NULL;
    uint32_t id;
    if (snapshots++ == 0) keep_one();
    if (stack_add(data, size, &stage) < 0) {
        must(errno != 0 && stage != NULL);
        return 0;
    }
    memcpy(&id, data, sizeof id);
    must(stack_find(id) != NULL && stack_drop(id) == 0 && stack_find(id) == NULL);
    return 0;
}
