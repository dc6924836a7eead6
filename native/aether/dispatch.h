/* Where frames of the host go. */
#ifndef AETHER_DISPATCH_H
#define AETHER_DISPATCH_H

#include "frame.h"

/*
 * Returns 0, -EPROTO when the frame breaks a rule of the link, or another error when the link has
 * to end and was told why.
 */
int dispatch_frame(const struct dsec_frame *frame);

#endif
