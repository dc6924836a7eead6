/* Leaves a word everywhere that may outlast or reach beyond a sandbox, and looks for one
 * everywhere. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	SHARED_KEY = 0x64736563,
	DEPTH_MAX = 6,
};

static void plant_file(const char *directory, const char *word)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, word);
	fd = open(path, O_CREAT | O_WRONLY, 0666);
	report(fd < 0 ? fd : write(fd, word, strlen(word)), "file-%s", directory);
	close(fd);
}

static int abstract_address(struct sockaddr_un *address, const char *word)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	strncpy(address->sun_path + 1, word, sizeof(address->sun_path) - 2);
	return (int)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(word));
}

static void plant_ipc(const char *word)
{
	struct sockaddr_un address;
	int length = abstract_address(&address, word), fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int segment = shmget(SHARED_KEY, 4096, IPC_CREAT | 0666);
	char *page = shmat(segment, NULL, 0), name[128];

	report(bind(fd, (struct sockaddr *)&address, (socklen_t)length), "abstract");
	listen(fd, 8);
	if (page != (char *)-1)
		strcpy(page, word);
	report(segment, "shm");
	report(semget(SHARED_KEY, 1, IPC_CREAT | 0666), "semaphore");
	report(msgget(SHARED_KEY, IPC_CREAT | 0666), "messages");
	snprintf(name, sizeof(name), "/%s", word);
	report(mq_open(name, O_CREAT | O_RDWR, 0666, NULL), "queue");
	report(syscall(SYS_add_key, "user", word, word, strlen(word), -4), "key");
}

/* `plant <word>`: stays, with the word as its name and arguments. */
int run_plant(int argc, char **argv)
{
	static const char *const directories[] = { "/tmp", "/dev/shm", "/root", "/dev/mqueue",
						   "/" };

	if (argc < 1)
		return 2;
	prctl(PR_SET_NAME, argv[0], 0, 0, 0);
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		plant_file(directories[i], argv[0]);
	plant_ipc(argv[0]);
	hold();
	return 0;
}

static bool file_has(const char *path, const char *word)
{
	static char content[65536];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	ssize_t length = fd < 0 ? -1 : read(fd, content, sizeof(content));

	close(fd);
	return length > 0 && memmem(content, (size_t)length, word, strlen(word)) != NULL;
}

static void look_below(const char *path, const char *word, int depth)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char inner[2048], own[32];

	snprintf(own, sizeof(own), "%d", getpid());
	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		struct stat stat;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, own) == 0 || strcmp(entry->d_name, "self") == 0 ||
		    strcmp(entry->d_name, "thread-self") == 0)
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path[1] == 0 ? "" : path,
			     entry->d_name) >= (int)sizeof(inner) ||
		    lstat(inner, &stat) < 0)
			continue;
		if (strstr(entry->d_name, word) != NULL)
			report(0, "found-name:%s", inner);
		if (S_ISDIR(stat.st_mode) && depth < DEPTH_MAX)
			look_below(inner, word, depth + 1);
		else if (S_ISREG(stat.st_mode) && file_has(inner, word))
			report(0, "found-in:%s", inner);
	}
	if (directory != NULL)
		closedir(directory);
}

/* `sweep <word>`: the word comes backwards, or whoever looks would find it in what this was called
 * with. */
int run_sweep(int argc, char **argv)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), length;
	struct sockaddr_un address;
	char name[128], word[64] = "";

	if (argc < 1 || strlen(argv[0]) >= sizeof(word))
		return 2;
	for (size_t i = 0, count = strlen(argv[0]); i < count; i++)
		word[i] = argv[0][count - 1 - i];
	length = abstract_address(&address, word);
	look_below("/", word, 0);
	if (connect(fd, (struct sockaddr *)&address, (socklen_t)length) == 0)
		report(0, "found-abstract");
	if (shmget(SHARED_KEY, 1, 0) >= 0)
		report(0, "found-shm");
	if (semget(SHARED_KEY, 1, 0) >= 0)
		report(0, "found-semaphore");
	if (msgget(SHARED_KEY, 0) >= 0)
		report(0, "found-messages");
	snprintf(name, sizeof(name), "/%s", word);
	if (mq_open(name, O_RDONLY) >= 0)
		report(0, "found-queue");
	if (syscall(SYS_request_key, "user", word, NULL, 0) >= 0)
		report(0, "found-key");
	report(0, "looked");
	return 0;
}

int run_ids(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	dprintf(STDOUT_FILENO, "uid %d\neuid %d\n", getuid(), geteuid());
	return 0;
}
