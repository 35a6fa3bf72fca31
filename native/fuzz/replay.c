/* Runs a fuzz target over the files it is given, without a fuzzer: the seeds, and inputs that once broke something. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) < 0) return 1;
    long size = ftell(file);
    rewind(file);
    unsigned char *data = size < 0 ? NULL : malloc((size_t)size + 1);
    int failed = data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size;
    if (!failed) {
        unsigned char *exact = malloc((size_t)size); /* so that a byte too far is seen */
        for (long i = 0; i < size && exact; i++) exact[i] = data[i];
        if (exact || size == 0) LLVMFuzzerTestOneInput(exact, (size_t)size);
        free(exact);
    }
    free(data);
    fclose(file);
    return failed;
}

int main(int count, char **paths)
{
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&count, &paths);
    for (int i = 1; i < count; i++)
        if (replay(paths[i])) {
            perror(paths[i]);
            return 1;
        }
    return 0;
}
