/* Codes of the error table for what Linux says. */
#ifndef AETHER_FAILURE_H
#define AETHER_FAILURE_H

#include "start.h"

const char *failure_code(int errno_value);
/* The code for a start that failed in some step. */
const char *failure_start_code(const struct start_failure *failure);
/* Writes a sentence about it. */
void failure_start_message(const struct start_failure *failure, char *text, size_t size);

#endif
