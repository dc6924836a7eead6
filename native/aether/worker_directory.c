#include "worker_directory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void directory_init(struct directory *directory, int fd)
{
	directory->fd = fd;
	directory->used = directory->at = 0;
}

void directory_rewind(struct directory *directory)
{
	lseek(directory->fd, 0, SEEK_SET);
	directory->used = directory->at = 0;
}

int directory_next(struct directory *directory, const struct directory_entry **entry)
{
	for (;;) {
		if (directory->at >= directory->used) {
			directory->at = 0;
			directory->used = syscall(SYS_getdents64, directory->fd, directory->bytes,
						  sizeof(directory->bytes));
			if (directory->used <= 0)
				return directory->used < 0 ? -errno : 0;
		}
		*entry = (const struct directory_entry *)(directory->bytes + directory->at);
		directory->at += (*entry)->length;
		if (strcmp((*entry)->name, ".") && strcmp((*entry)->name, ".."))
			return 1;
	}
}
