#include "frozen.h"

#include <string.h>

/* Nothing of a process's own lies below or above. */
static const uint64_t LOWEST = 0x10000, HIGHEST = 0x7ffffffff000;

struct part {
    const unsigned char *at;
    size_t left;
    bool bad;
};

static const void *take(struct part *part, uint64_t count, size_t each)
{
    const unsigned char *at = part->at;
    if (part->bad || count > part->left / each) {
        part->bad = true;
        return NULL;
    }
    part->at += count * each;
    part->left -= count * each;
    return at;
}

static bool is_whole(uint64_t number) { return number % FROZEN_PAGE == 0; }

static bool can_be(const struct frozen_region *region, const struct frozen_head *head)
{
    if (!is_whole(region->start) || !is_whole(region->bytes) || !is_whole(region->offset)) return false;
    if (region->start < LOWEST || region->start >= HIGHEST || region->bytes == 0) return false;
    if (region->bytes > HIGHEST - region->start || region->protection > 7) return false;
    switch (region->kind) {
    case REGION_EMPTY:
    case REGION_STACK: return true;
    case REGION_FILE: return region->file < head->files && region->offset < (uint64_t)1 << 40;
    case REGION_PAGES:
    case REGION_COPY:
        if (region->offset < head->table_bytes || region->offset > head->file_bytes) return false;
        return region->bytes <= head->file_bytes - region->offset;
    default: return false;
    }
}

/* Eight bytes of a region that is written to. */
static bool is_in_reach(const struct frozen *frozen, uint64_t address)
{
    for (uint32_t i = 0; i < frozen->head->regions; i++) {
        const struct frozen_region *region = &frozen->regions[i];
        if (!region->fixed || address < region->start) continue;
        if (address - region->start <= region->bytes - sizeof(uint64_t)) return true;
    }
    return false;
}

static bool all_can_be(const struct frozen *frozen)
{
    const struct frozen_head *head = frozen->head;
    for (uint32_t i = 0; i < head->regions; i++)
        if (!can_be(&frozen->regions[i], head)) return false;
    for (uint32_t i = 0; i < head->files; i++)
        if (frozen->files[i].name >= head->terms_bytes) return false;
    for (uint32_t i = 0; i < head->fixups; i++)
        if (!is_in_reach(frozen, frozen->fixups[i])) return false;
    return frozen->terms[head->terms_bytes - 1] == 0;
}

bool frozen_read(const void *table, size_t size, uint64_t file_bytes, struct frozen *into)
{
    struct part part = {table, size, false};
    const struct frozen_head *head = into->head = take(&part, 1, sizeof *head);
    if (part.bad || memcmp(head->magic, FROZEN_MAGIC, sizeof head->magic) != 0) return false;
    if (head->version != FROZEN_VERSION || head->table_bytes != size || head->file_bytes != file_bytes) return false;
    if (head->regions > FROZEN_MOST || head->files > FROZEN_MOST || head->fixups > FROZEN_MOST) return false;
    if (!is_whole(head->table_bytes) || head->vdso_bytes % sizeof(uint64_t) || head->terms_bytes == 0) return false;
    into->regions = take(&part, head->regions, sizeof *into->regions);
    into->files = take(&part, head->files, sizeof *into->files);
    into->fixups = take(&part, head->fixups, sizeof *into->fixups);
    into->vdso = take(&part, head->vdso_bytes, 1);
    into->terms = take(&part, head->terms_bytes, 1);
    return !part.bad && all_can_be(into);
}

bool frozen_touches(const struct frozen *frozen, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < frozen->head->regions; i++) {
        const struct frozen_region *region = &frozen->regions[i];
        if (region->start < end + FROZEN_PAGE && start < region->start + region->bytes + FROZEN_PAGE) return true;
    }
    return false;
}
