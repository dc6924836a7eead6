/*
 * What the policy of the sandbox takes from those who are started inside, beyond what the platform
 * takes from all: capabilities, places (Landlock) and system calls. Set by the host before anything
 * starts, and again with another stage of the policy: then whoever had more is ended first.
 */
#ifndef AETHER_RULES_H
#define AETHER_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"

/* Handlers of frames; see dispatch.h. */
int rules_take(const struct dsec_frame *frame);
int rules_quiesce(const struct dsec_frame *frame);

/* Nothing may start until the host has said what holds: who wants to is told RULES_HELD. */
bool rules_held(void);
#define RULES_HELD "the policy of the sandbox changes: try again"

/* Called by the loop when children have ended. */
void rules_children_ended(void);

/* The capabilities that root may keep. */
uint64_t rules_capabilities(void);

/* For use after a fork, in this order, the last just before an exec. Return 0 or a negative errno.
 */
int rules_confine(void);
int rules_filter(void);

#endif
