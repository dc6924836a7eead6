#include "outlet.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "dsec_protocol.gen.h"

void outlet_init(struct outlet *outlet, uint32_t window, bool keeps)
{
	*outlet = (struct outlet){ .window = window, .keeps = keeps, .credit = window };
}

void outlet_free(struct outlet *outlet)
{
	if (outlet->ring)
		munmap(outlet->ring, outlet->window);
	outlet->ring = NULL;
}

int outlet_pieces(const struct outlet *outlet, uint64_t offset, uint32_t length,
		  struct iovec pieces[2])
{
	uint32_t at = (uint32_t)((offset - outlet->start) % outlet->window);
	uint32_t first = length < outlet->window - at ? length : outlet->window - at;

	pieces[0] = (struct iovec){ outlet->ring + at, first };
	pieces[1] = (struct iovec){ outlet->ring, length - first };
	return length == 0 ? 0 : length == first ? 1 : 2;
}

int outlet_space(struct outlet *outlet, struct iovec pieces[2])
{
	uint32_t free_bytes = outlet->window - (uint32_t)(outlet->head - outlet->base);

	if (free_bytes == 0)
		return 0;
	if (!outlet->ring) {
		void *ring = mmap(NULL, outlet->window, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (ring == MAP_FAILED)
			return 0;
		outlet->ring = ring;
	}
	/* An empty ring starts over, so that a command that says little touches few pages. */
	if (outlet->head == outlet->base)
		outlet->start = outlet->head;
	return outlet_pieces(outlet, outlet->head, free_bytes, pieces);
}

void outlet_add(struct outlet *outlet, uint64_t bytes)
{
	outlet->head += bytes;
}

uint32_t outlet_sendable(const struct outlet *outlet)
{
	uint64_t limit = outlet->head < outlet->credit ? outlet->head : outlet->credit;
	uint64_t bytes = limit > outlet->sent ? limit - outlet->sent : 0;

	return bytes < DSEC_FRAME_DATA_BYTES_MAX ? (uint32_t)bytes : DSEC_FRAME_DATA_BYTES_MAX;
}

bool outlet_has_frame(const struct outlet *outlet)
{
	if (outlet_sendable(outlet) > 0)
		return true;
	return outlet->ended && !outlet->end_sent && outlet->sent == outlet->head;
}

bool outlet_is_done(const struct outlet *outlet)
{
	return outlet->end_sent;
}

int outlet_ack(struct outlet *outlet, uint64_t offset)
{
	if (offset > outlet->sent)
		return -EPROTO;
	if (outlet->keeps && offset > outlet->base)
		outlet->base = offset;
	return 0;
}

void outlet_grant(struct outlet *outlet, uint64_t credit)
{
	if (credit > outlet->credit)
		outlet->credit = credit;
}

void outlet_sent(struct outlet *outlet, uint64_t offset, bool end)
{
	outlet->sent = offset;
	if (end)
		outlet->end_sent = true;
	if (!outlet->keeps)
		outlet->base = offset;
}

int outlet_resume(struct outlet *outlet, uint64_t offset)
{
	if (offset < outlet->base || offset > outlet->head)
		return -ERANGE;
	outlet->base = offset;
	outlet->sent = offset;
	outlet->end_sent = false;
	/* A host that starts anew knows nothing of what it granted before. */
	if (outlet->credit < offset + outlet->window)
		outlet->credit = offset + outlet->window;
	return 0;
}
