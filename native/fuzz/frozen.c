/* A frozen file's table, which a jail's root may have written: what is believed of it stays within bounds. */
#include "frozen.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { PAGE = 4096, CHOSEN = 5 };

/* What cannot be guessed is right; how many there are of each is chosen by the first bytes, and the rest is theirs. */
static void lay(unsigned char *table, const uint8_t *data, size_t size)
{
    struct frozen_head *head = (struct frozen_head *)table;
    uint8_t chosen[CHOSEN] = {0};
    memcpy(chosen, data, size < CHOSEN ? size : CHOSEN);
    memcpy(head->magic, FROZEN_MAGIC, sizeof head->magic);
    head->version = FROZEN_VERSION;
    head->regions = chosen[0] & 0x80 ? chosen[0] * 40u : chosen[0] % 4;
    head->files = chosen[1] & 0x80 ? chosen[1] * 40u : chosen[1] % 4;
    head->fixups = chosen[2] & 0x80 ? chosen[2] * 40u : chosen[2] % 4;
    head->vdso_bytes = chosen[3] & 0x80 ? (uint64_t)-8 : chosen[3] % 4 * 8;
    head->terms_bytes = chosen[4] & 0x80 ? chosen[4] * 50u : chosen[4] % 32;
    head->table_bytes = PAGE;
    head->file_bytes = 4 * PAGE;
    if (size > CHOSEN) memcpy(table + sizeof *head, data + CHOSEN, size - CHOSEN < PAGE - sizeof *head ? size - CHOSEN : PAGE - sizeof *head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frozen frozen;
    unsigned char *table = calloc(1, PAGE);
    must(table != NULL);
    lay(table, data, size);
    if (frozen_read(table, PAGE, 4 * PAGE, &frozen)) {
        for (uint32_t i = 0; i < frozen.head->files; i++)
            must(frozen.files[i].name + strlen(frozen.terms + frozen.files[i].name) < frozen.head->terms_bytes);
        for (uint32_t i = 0; i < frozen.head->regions; i++) {
            const struct frozen_region *region = &frozen.regions[i];
            must(region->start + region->bytes > region->start);
            must(region->kind != REGION_FILE || region->file < frozen.head->files);
            must(frozen_touches(&frozen, region->start, region->start + 1));
        }
        uint64_t seen = 0;
        for (uint64_t i = 0; i < frozen.head->vdso_bytes; i++) seen += frozen.vdso[i];
        must(seen <= frozen.head->vdso_bytes * 255);
    }
    must(!frozen_read(data, size, size, &frozen) || size >= PAGE);
    free(table);
    return 0;
}
