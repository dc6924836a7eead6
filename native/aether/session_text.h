/* The line that a session's shell reads for one command. */
#ifndef AETHER_SESSION_TEXT_H
#define AETHER_SESSION_TEXT_H

#include <stddef.h>

#include "dsec_protocol.gen.h"

enum {
	SESSION_WORD_BYTES = 32,
	/* What a pipe holds without being asked. */
	SESSION_PIPE_BYTES = 65536,
};

/*
 * Allocates the line: the command's text, or its arguments as quoted words, in an `eval` that has
 * no access to the status descriptor, then the report of `word` and the status there. NULL without
 * memory.
 */
char *session_text(const struct dsec_msg_exec_start *message, const char *word, size_t *length);

#endif
