/* Command lines and variables that anybody may write, held against terms that a jail's root may have written. */
#include "asked.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST = 16 };

/* Zero-ended words out of `text`; how many. */
static int split(char *text, size_t size, char *words[MOST + 1])
{
    int count = 0;
    for (char *at = text; at < text + size && count < MOST; at += strlen(at) + 1) words[count++] = at;
    words[count] = NULL;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[MOST + 1], *environment[MOST + 1];
    if (size < 2) return 0;
    size_t first = data[0] % (size - 1), second = (size - 1 - first) / 2, third = size - 1 - first - second;
    char *asked = calloc(1, first + 1), *told = calloc(1, second + 1), *terms = calloc(1, third + 1);
    must(asked && told && terms);
    memcpy(asked, data + 1, first);
    memcpy(told, data + 1 + first, second);
    memcpy(terms, data + 1 + first + second, third);
    int count = split(asked, first, words);
    split(told, second, environment);
    if (count > 0) {
        enum reason reason = asked_for(count, words);
        must(reason == SERVED || reason == FLAGS);
        must(reason == FLAGS || count == 1 || words[1][0]);
        bool here = asked_here(words[0], strlen(words[0]), "python", terms, third + 1);
        must(!here || third > strlen(words[0]));
    }
    enum reason among = asked_among(environment, terms, third + 1);
    must(among == SERVED || among == VARIABLES || among == LOCALE);
    for (char **each = environment; *each; each++)
        must(among == VARIABLES || strncmp(*each, "LD_PRELOAD", 10) != 0);
    must(asked_seed(environment) != NULL);
    free(asked);
    free(told);
    free(terms);
    return 0;
}
