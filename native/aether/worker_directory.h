/* Reading a directory entry by entry, in memory of the caller. */
#ifndef AETHER_WORKER_DIRECTORY_H
#define AETHER_WORKER_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	DIRECTORY_BYTES = 8192,
};

/* As getdents64(2) has it. */
struct directory_entry {
	uint64_t inode;
	int64_t offset; /* the position behind it */
	uint16_t length;
	uint8_t type;
	char name[];
};

struct directory {
	int fd;
	long used;
	long at;
	_Alignas(8) char bytes[DIRECTORY_BYTES];
};

void directory_init(struct directory *directory, int fd);
/* Starts over. */
void directory_rewind(struct directory *directory);
/* The next entry that is not `.` or `..`. Returns 1, 0 at the end, or a negative errno. */
int directory_next(struct directory *directory, const struct directory_entry **entry);

#endif
