#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char USUAL_PATH[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const char *variable(char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') return *env + length + 1;
    return NULL;
}

/* Strings of the wire have no zero at their end: they get one in the room behind the pointers. */
static char *keep(struct text text, char **room)
{
    char *kept = *room;
    memcpy(kept, text.at, text.length);
    kept[text.length] = 0;
    *room += text.length + 1;
    return kept;
}

static void keep_all(struct reader *from, char **into, uint16_t count, char **room)
{
    for (uint16_t i = 0; i < count; i++) into[i] = keep(take_text(from), room);
    into[count] = NULL;
}

/* All the pointers, then the limits, then what the strings take: never more than their bytes and one zero each. */
static bool make_room(struct exec_request *request, size_t bytes, char **strings)
{
    size_t pointers = (size_t)request->head.argc + request->head.envc + 3; /* two ends, and a HOME */
    size_t limits = request->head.limits * sizeof(struct exec_limit);
    size_t texts = bytes + pointers + HEAD_BYTES;
    request->room = malloc(pointers * sizeof(char *) + limits + texts);
    if (request->room == NULL) return false;
    request->argv = request->room;
    request->env = request->argv + request->head.argc + 1;
    request->limits = (const struct exec_limit *)(request->argv + pointers);
    *strings = (char *)(request->argv + pointers) + limits;
    return true;
}

int request_take(struct reader body, struct exec_request *request)
{
    char *room;
    *request = (struct exec_request){0};
    take_bytes(&body, &request->head, sizeof request->head);
    if (body.bad) return EPROTO;
    if (!make_room(request, body.left, &room)) return ENOMEM;
    request->user = take_text(&body);
    struct text cwd = take_text(&body);
    request->cwd = cwd.length ? keep(cwd, &room) : "/";
    keep_all(&body, request->argv, request->head.argc, &room);
    request->setting = body.at;
    keep_all(&body, request->env, request->head.envc, &room);
    take_bytes(&body, (void *)(uintptr_t)request->limits, request->head.limits * sizeof(struct exec_limit));
    request->input = body.at;
    request->setting_bytes = (size_t)(body.at - request->setting);
    if (body.bad || body.left != request->head.stdin_bytes) {
        request_free(request);
        return EPROTO;
    }
    const char *path = variable(request->env, "PATH");
    request->path = path ? path : USUAL_PATH;
    return 0;
}

void request_free(struct exec_request *request)
{
    free(request->room);
    request->room = NULL;
}
