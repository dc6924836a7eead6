/* Little-endian numbers at any address. */
#ifndef DSEC_MESSAGE_BYTES_H
#define DSEC_MESSAGE_BYTES_H

#include <stdint.h>

static inline uint64_t dsec_get_le(const uint8_t *from, unsigned int width)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < width; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

static inline void dsec_put_le(uint8_t *to, uint64_t value, unsigned int width)
{
	for (unsigned int i = 0; i < width; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

#endif
