/* OP_EXEC taken apart: every pointer of what comes out leads into memory that is there. */
#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static size_t weight;

static void weigh(char *const *strings)
{
    for (; *strings; strings++) weight += strlen(*strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exec_request request;
    if (request_take(reader_of(data, size), &request) != 0) return 0;
    weigh(request.argv);
    weigh(request.env);
    weight += strlen(request.cwd) + strlen(request.path) + request.user.length;
    for (uint16_t i = 0; i < request.head.limits; i++) weight += request.limits[i].resource & 1;
    for (uint32_t i = 0; i < request.head.stdin_bytes; i++) weight += request.input[i];
    for (size_t i = 0; i < request.setting_bytes; i++) weight += request.setting[i];
    must(weight != SIZE_MAX); /* so that it is all read */
    request_free(&request);
    return 0;
}
