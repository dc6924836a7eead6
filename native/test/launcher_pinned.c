/* Shows tests what is in the launcher's pinned namespace: each path, of the directories that it
 * keeps. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	DESCRIPTORS_MAX = 16,
};

static int show(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	puts(path);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	DIR *uppers;
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;

	if (fd < 0 || setns(fd, CLONE_NEWNS))
		return 1;
	uppers = opendir("/uppers");
	while (uppers && (entry = readdir(uppers))) {
		if (entry->d_name[0] != '.')
			printf("/uppers/%s\n", entry->d_name);
	}
	/* FTW_MOUNT: what layers hold is not of interest. */
	return nftw("/layers", show, DESCRIPTORS_MAX, FTW_PHYS | FTW_MOUNT);
}
