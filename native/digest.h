/* One SHA-256 of a whole tree: equal exactly if the trees are, whatever file system they are on and whenever written.
 *
 * What is hashed, little endian, a string being u32 length and bytes:
 *
 *     "excise tree 1\n", then the record of the top, whose name is empty; a link as the top is followed
 *     record of an entry:  u8 kind: d f l p s c b | u32 mode & 07777 (links: 0777) | u32 uid | u32 gid | string name
 *       f   u32 n, n x (string attribute, string value) | u64 size | that many bytes of content
 *       d   u32 n, n x (string attribute, string value) | the records in it, sorted by the bytes of their names | u8 0
 *       l   string target
 *       c b u32 major | u32 minor
 *
 * Attributes are the extended ones of files and directories that change what programs see, sorted by name: user.*,
 * security.capability, system.posix_acl_access, system.posix_acl_default. Times, sizes of directories, holes and hard
 * links are left out: they differ between equal trees on different file systems (two names of one file count as two
 * files). Memory: the names of the directories on the way to one entry, and a buffer.
 */
#ifndef EXCISE_DIGEST_H
#define EXCISE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "sha256.h"

struct digest {
    uint64_t entries; /* records, the top's included */
    unsigned char bytes[SHA256_BYTES];
};

/* Of what is at `path`. On failure -1 with errno (ESTALE: it changed meanwhile), and where below it was. */
int tree_digest(const char *path, struct digest *digest, char *where, size_t room);

#endif
