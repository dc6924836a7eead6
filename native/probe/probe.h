/*
 * A program of hostile actions for tests: each verb tries all of one kind and says of every attempt
 * what the kernel answered. It is never installed. What it says is not what a test believes: the
 * same verb is shown to succeed without the protection, and the effect is looked for from the host.
 */
#ifndef DSEC_PROBE_H
#define DSEC_PROBE_H

#include <stdbool.h>

/* One line, `<item> <errno>`: 0 when `value` is not negative. Takes errno as it is. */
void report(long value, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs in a child of its own, so that what it does to itself ends with it. The value is 0 or -1
 * with errno. */
long in_child(long (*action)(const void *), const void *argument);

/* Until standard input ends, or for ever where it is none. */
void hold(void);

/* argv begins behind the verb. */
typedef int (*verb_run)(int argc, char **argv);

int run_signals(int argc, char **argv);
int run_kill_all(int argc, char **argv);
int run_trace(int argc, char **argv);
int run_steer(int argc, char **argv);
int run_steal(int argc, char **argv);
int run_namespaces(int argc, char **argv);
int run_mounts(int argc, char **argv);
int run_inode_flags(int argc, char **argv);
int run_kernel(int argc, char **argv);
int run_sockets(int argc, char **argv);
int run_devices(int argc, char **argv);
int run_walk(int argc, char **argv);
int run_terminal(int argc, char **argv);
int run_pool(int argc, char **argv);
int run_memory(int argc, char **argv);
int run_forks(int argc, char **argv);
int run_storm(int argc, char **argv);
int run_spy(int argc, char **argv);
int run_plant(int argc, char **argv);
int run_sweep(int argc, char **argv);
int run_ids(int argc, char **argv);
int run_scribble(int argc, char **argv);
int run_attributes(int argc, char **argv);
int run_dive(int argc, char **argv);
int run_foreign_abi(int argc, char **argv);
int run_plain(int argc, char **argv);
int probe_run(const char *verb, int argc, char **argv);

#endif
