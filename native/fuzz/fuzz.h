/* What a fuzz target is to a fuzzer. */
#ifndef EXCISE_FUZZ_H
#define EXCISE_FUZZ_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has to hold, said when it does not. */
#define must(holds) ((holds) ? (void)0 : broken(__FILE__, __LINE__, #holds))

static inline void broken(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s does not hold (errno: %s)\n", file, line, what, strerror(errno));
    abort();
}

/* Before the first input, if the target has any use for it. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *count, char ***words);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
