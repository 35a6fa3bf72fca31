#include "quote.h"

static const char *escape_of(char each)
{
    switch (each) {
    case '\n': return "\\n";
    case '\'': return "\\'";
    case '\\': return "\\\\";
    default: return NULL;
    }
}

void quote(struct buffer *into, const char *script, size_t size)
{
    size_t plain = 0;
    put_bytes(into, "$'", 2);
    for (size_t i = 0; i < size; i++) {
        const char *escape = escape_of(script[i]);
        if (escape == NULL) continue;
        put_bytes(into, script + plain, i - plain);
        put_bytes(into, escape, 2);
        plain = i + 1;
    }
    put_bytes(into, script + plain, size - plain);
    put_u8(into, '\'');
}
