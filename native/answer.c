#include "answer.h"

#include <string.h>
#include <sys/wait.h>

#include "link.h"
#include "watch.h"

void answer_done(uint32_t id) { frame_end(&outgoing, frame_begin(&outgoing, OP_DONE, 0, id)); }

void answer_error(uint32_t id, int error, const char *message)
{
    size_t began = frame_begin(&outgoing, OP_ERROR, 0, id);
    put_u32(&outgoing, (uint32_t)error);
    put_text(&outgoing, message, strlen(message));
    frame_end(&outgoing, began);
}

void answer_output(uint32_t id, uint8_t stream, const struct output *output)
{
    if (output_kept(output) == 0) return;
    size_t began = frame_begin(&outgoing, OP_OUTPUT, stream, id);
    output_put(output, &outgoing);
    frame_end(&outgoing, began);
}

void answer_result(uint32_t id, struct result_head *result, const struct output *out, const struct output *err)
{
    result->stdout_total = out->total;
    result->stderr_total = err->total;
    result->stdout_bytes = (uint32_t)output_kept(out);
    result->stderr_bytes = (uint32_t)output_kept(err);
    result->sent_ns = now_ns();
    size_t began = frame_begin(&outgoing, OP_RESULT, 0, id);
    put_bytes(&outgoing, result, sizeof *result);
    output_put(out, &outgoing);
    output_put(err, &outgoing);
    frame_end(&outgoing, began);
}

static uint64_t nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

void result_of(struct result_head *result, int status, const struct rusage *usage)
{
    result->end = WIFSIGNALED(status) ? END_SIGNAL : END_EXIT;
    result->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    result->user_ns = nanoseconds(usage->ru_utime);
    result->system_ns = nanoseconds(usage->ru_stime);
    result->max_rss_kib = (uint64_t)usage->ru_maxrss;
}

void result_not_started(struct result_head *result, enum fault fault, int error)
{
    result->end = END_NOT_STARTED;
    result->code = fault == FAULT_MISSING_PROGRAM ? 127 : 126;
    result->fault = (uint8_t)fault;
    result->error = (uint16_t)error;
}
