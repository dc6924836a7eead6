/* Workers that look at names and change them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "message_bytes.h"
#include "worker.h"
#include "worker_directory.h"

enum {
	MODE_DEFAULT = 0755,
	CURSOR_BYTES = 8,
	/* Of one page, with room for the cursor. */
	PAGE_BYTES = 62 * 1024,
};

static const struct {
	mode_t mode;
	uint8_t kind;
} kinds[] = {
	{ S_IFREG, DSEC_FILE_ATTRIBUTES_KIND_FILE },
	{ S_IFDIR, DSEC_FILE_ATTRIBUTES_KIND_DIRECTORY },
	{ S_IFLNK, DSEC_FILE_ATTRIBUTES_KIND_SYMLINK },
	{ S_IFCHR, DSEC_FILE_ATTRIBUTES_KIND_CHAR },
	{ S_IFBLK, DSEC_FILE_ATTRIBUTES_KIND_BLOCK },
	{ S_IFIFO, DSEC_FILE_ATTRIBUTES_KIND_FIFO },
	{ S_IFSOCK, DSEC_FILE_ATTRIBUTES_KIND_SOCKET },
};

/* Frames carry integers that are exact in a double; a sparse file and a time may be beyond. */
static int64_t clamp(int64_t value)
{
	const int64_t most = (1LL << 53) - 1;

	return value > most ? most : value < -most ? -most : value;
}

/* `directory` and `path` name it for readlinkat; the target stays in static memory until the next
 * call. */
static void fill(struct dsec_msg_file_attributes *attributes, const struct stat *status,
		 struct dsec_bytes name, int directory, const char *path)
{
	static char target[4096];

	*attributes = (struct dsec_msg_file_attributes){
		.name = name,
		.mode = status->st_mode & 07777,
		.uid = status->st_uid,
		.gid = status->st_gid,
		.size_bytes = (uint64_t)clamp(status->st_size),
		.allocated_bytes = (uint64_t)status->st_blocks * 512,
		.links = (uint32_t)status->st_nlink,
		.mtime_seconds = clamp(status->st_mtim.tv_sec),
		.mtime_nanoseconds = (uint32_t)status->st_mtim.tv_nsec,
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if ((status->st_mode & S_IFMT) == kinds[i].mode)
			attributes->kind = kinds[i].kind;
	}
	if (S_ISLNK(status->st_mode)) {
		ssize_t length = readlinkat(directory, path, target, sizeof(target) - 1);

		if (length > 0) {
			attributes->symlink_target =
				(struct dsec_bytes){ (uint8_t *)target, (uint32_t)length };
			attributes->present |= DSEC_FILE_ATTRIBUTES_HAS_SYMLINK_TARGET;
		}
	}
}

void worker_stat(const struct dsec_msg_file_stat *message)
{
	struct dsec_msg_file_attributes attributes;
	struct stat status;
	int fd = worker_open(message->path, O_PATH | (message->follow_symlinks ? 0 : O_NOFOLLOW));

	if (fd < 0)
		worker_fail(fd, "stat");
	if (fstat(fd, &status))
		worker_fail(-errno, "stat");
	fill(&attributes, &status, worker_last_name(message->path), fd, "");
	worker_answer(DSEC_AETHER_FILE_ATTRIBUTES, &attributes);
}

/*
 * A page of a directory, in the order that its file system has. The cursor is the position behind
 * the last entry: names that stay are seen once, whatever else changes, as far as the file system
 * promises.
 */
void worker_list(const struct dsec_msg_file_list *message)
{
	static uint8_t page[PAGE_BYTES];
	static struct directory directory;
	struct dsec_msg_file_entries entries = { 0 };
	struct dsec_msg_file_attributes attributes;
	uint8_t cursor[CURSOR_BYTES];
	const struct directory_entry *entry;
	int64_t position = 0;
	int err;

	err = worker_open(message->path, O_RDONLY | O_DIRECTORY);
	if (err < 0)
		worker_fail(err, "list");
	directory_init(&directory, err);
	if (message->present & DSEC_FILE_LIST_HAS_CURSOR) {
		if (message->cursor.length != CURSOR_BYTES)
			worker_fail(-EINVAL, "cursor");
		position = (int64_t)dsec_get_le(message->cursor.data, CURSOR_BYTES);
		if (lseek(directory.fd, position, SEEK_SET) < 0)
			worker_fail(-errno, "cursor");
	}
	while ((err = directory_next(&directory, &entry)) > 0) {
		struct dsec_bytes name = { (const uint8_t *)entry->name,
					   (uint32_t)strlen(entry->name) };
		struct stat status;

		if (entries.entries.count == message->entries_max)
			break;
		/* Gone since it was read. */
		if (fstatat(directory.fd, entry->name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		fill(&attributes, &status, name, directory.fd, entry->name);
		if (dsec_list_put_message(&entries.entries, page, sizeof(page),
					  &dsec_msg_file_attributes, &attributes))
			break;
		position = entry->offset;
	}
	if (err < 0)
		worker_fail(err, "list");
	if (err > 0) {
		dsec_put_le(cursor, (uint64_t)position, CURSOR_BYTES);
		entries.cursor = (struct dsec_bytes){ cursor, CURSOR_BYTES };
		entries.present = DSEC_FILE_ENTRIES_HAS_CURSOR;
	}
	worker_answer(DSEC_AETHER_FILE_ENTRIES, &entries);
}

void worker_mkdir(const struct dsec_msg_file_mkdir *message)
{
	mode_t mode = message->present & DSEC_FILE_MKDIR_HAS_MODE ? message->mode : MODE_DEFAULT;
	char name[256];
	int parent = worker_open_parent(message->path, message->create_parents, name);
	int err;

	if (parent < 0)
		worker_fail(parent, "mkdir");
	err = mkdirat(parent, name, mode & 0777) ? -errno : 0;
	if (!err && fchmodat(parent, name, mode, 0))
		err = -errno;
	if (err == -EEXIST && message->create_parents) {
		int existing = worker_open(message->path, O_PATH | O_DIRECTORY);

		err = existing < 0 ? -EEXIST : 0;
	}
	if (err)
		worker_fail(err, "mkdir");
	worker_answer(DSEC_AETHER_DONE, &(struct dsec_msg_done){ 0 });
}

void worker_move(const struct dsec_msg_file_move *message)
{
	char source_name[256], target_name[256];
	int source = worker_open_parent(message->source, false, source_name);
	int target = worker_open_parent(message->target, false, target_name);

	if (source < 0 || target < 0)
		worker_fail(source < 0 ? source : target, "move");
	if (syscall(SYS_renameat2, source, source_name, target, target_name,
		    message->replace ? 0 : RENAME_NOREPLACE))
		worker_fail(-errno, "move");
	worker_answer(DSEC_AETHER_DONE, &(struct dsec_msg_done){ 0 });
}
