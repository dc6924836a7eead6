/* SHA-256 (FIPS 180-4), for the identity of layers. */
#ifndef LAUNCHER_SHA256_H
#define LAUNCHER_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
	SHA256_BLOCK_BYTES = 64,
	SHA256_HEX_BYTES = 64,
};

struct sha256 {
	uint32_t state[8];
	uint64_t length;
	uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_init(struct sha256 *hash);
void sha256_update(struct sha256 *hash, const uint8_t *data, size_t length);
/* Writes the digest as lower-case hex and a NUL. */
void sha256_hex(struct sha256 *hash, char hex[SHA256_HEX_BYTES + 1]);

#endif
