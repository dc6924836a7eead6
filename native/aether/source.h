/* Sources: where an outlet's bytes come from, the read end of a pipe or a terminal's master. */
#ifndef AETHER_SOURCE_H
#define AETHER_SOURCE_H

#include "loop.h"

struct outlet;
struct stream;

struct source {
	struct watch watch;
	struct outlet *outlet; /* NULL: what comes is dropped */
	struct stream *stream; /* told when there is something to send */
	bool is_wide;	       /* the pipe was made larger */
	bool cut;	       /* the end is known: after cut_left more bytes */
	uint64_t cut_left;
	/* The outlet has its last byte. */
	void (*ended)(struct source *source);
};

/* Begins to read; the descriptor must not block. Returns 0 or a negative errno. */
int source_open(struct source *source, int fd);
/* Reads on after the outlet got space. */
void source_resume(struct source *source);
/* Ends the outlet after the bytes that are in the pipe by now. */
void source_cut(struct source *source);
void source_close(struct source *source);

#endif
