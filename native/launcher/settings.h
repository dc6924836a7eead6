/*
 * Settings of cgroups that the edge changes while a sandbox runs. A write may take as long as the
 * kernel needs to give memory back, so each is done by a worker: in order for an object, some at a
 * time for all.
 */
#ifndef LAUNCHER_SETTINGS_H
#define LAUNCHER_SETTINGS_H

#include "frame.h"
#include "object.h"

/* Answers `origin` when all is written, or what could not be. The place is one of the object's. */
void settings_write(struct object *object, const struct place *place, struct origin origin,
		    struct dsec_list settings);

/*
 * Takes back what is not written yet, as the object's cgroups are about to be somebody else's. True
 * when one is still being written: it is broken off, and lifecycle_written() called once it has
 * ended.
 */
bool settings_cancel(const struct object *object);

#endif
