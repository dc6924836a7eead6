/*
 * Other mounts for the policy of a sandbox that runs. What is there for a policy is known by the
 * mount table alone (masks come from places of their own, and nothing else makes a second mount of
 * the root), so that it does not matter how far an earlier attempt came, or whose it was.
 */
#ifndef LAUNCHER_REMOUNT_H
#define LAUNCHER_REMOUNT_H

#include "frame.h"
#include "link.h"

void remount(struct origin origin, const struct dsec_msg_remount *request);

#endif
