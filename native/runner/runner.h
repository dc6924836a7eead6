/*
 * The platform's part inside a sandbox that grades. It puts a solution, as the host has taken it
 * from the solver's sandbox, into the fresh tree; and it runs a command of the grader without any
 * privilege and tells the host, on its own standard output, which no tested code can open, what
 * that command reported.
 */
#ifndef RUNNER_RUNNER_H
#define RUNNER_RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the solution from standard input. Returns the status to exit with. */
int apply_solution(void);

/* Removes what is below `parent`/`name`, or that itself when it is no directory, but for what is
 * kept. */
int clear_tree(int parent, const char *name, const char *path);

/* A pattern of names that are kept, `*` in front for any beginning; or an absolute path. */
int keep_name(const char *pattern);
int keep_path(const char *path);
bool is_kept(const char *path, const char *name);

/* Runs a command as this user and group, and reports. Returns the status to exit with. */
int run_command(uid_t uid, gid_t gid, char **argv);

/* Says on standard error what failed, with errno, and returns 1. */
int complain(const char *what, const char *path);

#endif
