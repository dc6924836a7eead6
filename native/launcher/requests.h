/* The requests of an edge, each handed to the part that answers it. */
#ifndef LAUNCHER_REQUESTS_H
#define LAUNCHER_REQUESTS_H

#include "link.h"

void request_handle(struct origin origin, const struct dsec_frame *frame);

#endif
