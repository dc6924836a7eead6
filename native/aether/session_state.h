/* What the two halves of sessions share: their lives, and the commands that they run. */
#ifndef AETHER_SESSION_STATE_H
#define AETHER_SESSION_STATE_H

#include "command.h"
#include "session.h"
#include "session_text.h"

enum {
	STATUS_BYTES_MAX = 64,
};

struct session {
	struct session *next;
	char id[ID_BYTES_MAX + 1];
	bool is_terminal;
	bool is_open; /* the shell runs */
	bool has_ended;
	struct stream stream; /* of the request that opens it */
	struct stream watch;  /* of the one that waits for its end */
	struct process process;
	struct command *current;
	bool current_reads; /* its input is the session's */
	char word[SESSION_WORD_BYTES + 1];
	char status[STATUS_BYTES_MAX];
	uint32_t status_used;
	struct timer settle;
	struct timer stubborn;
	const char *failure_code;
	int failure_errno;
	char failure_message[FAILURE_BYTES_MAX];
};

struct session *session_find(struct dsec_bytes id);
void session_free(struct session *session);

/* Sets up what a session needs to run commands. */
void session_prepare(struct session *session);
/* Begins to listen for the ends of commands: the shell runs. */
void session_listen(struct session *session);
/* The shell is gone, and this was its status. */
void session_shell_ended(struct session *session, const struct ending *ending);

#endif
