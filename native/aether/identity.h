/* Becoming the user that a command or file operation runs as. For use after a fork. */
#ifndef AETHER_IDENTITY_H
#define AETHER_IDENTITY_H

#include "passwd.h"

/* root without a look at any file: what most commands run as. */
extern const struct account account_root;

/*
 * Finds the account for `user`; without a user it is root's, which needs no line. `whole` asks for
 * its line all the same (its shell and groups). Returns 0, -ENOENT, or another negative errno.
 */
int identity_find(struct dsec_bytes user, bool whole, struct account *account);

/* aether's own number for an id of the session namespace. */
uint32_t identity_outside(uint32_t inside);

/* Of the kernel's scores: who goes first when the sandbox's memory limit is reached. */
#define YIELD_LEADER "1000"
/* Before the agent, after whatever a session has started. */
#define YIELD_KEEPER "900"

/*
 * Lets this process go before the agent, which may look larger than one whose memory is in pipes,
 * sockets or page tables, and which the kernel may have been told to spare. The file is opened by a
 * process that still has the agent's ids, which no session can trace: only while it is dumpable is
 * the file its own. A descriptor of it, and 0; or a negative errno.
 */
int identity_open_score(void);
int identity_yield_memory(int score_fd, const char *score);

/*
 * Enters the session namespace, if there is one, and takes the account's ids there, with no
 * capability beyond what containers of other runtimes commonly have. Returns 0 or a negative errno.
 */
int identity_assume(const struct account *account);

#endif
