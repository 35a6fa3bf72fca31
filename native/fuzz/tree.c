/* What /proc says of a process, which chooses its own name: the first byte says which file it is. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    char *text = malloc(size);
    must(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    struct process process;
    if (data[0] & 1) {
        uint64_t tag = tag_in(text, size - 1);
        must(tag == NO_TAG || tag >> 56 == tag_next() >> 56);
    } else if (process_in(text, &process)) {
        must(strlen(process.name) < sizeof process.name);
    }
    free(text);
    return 0;
}
