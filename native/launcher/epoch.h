/*
 * The newest epoch that an edge of this state root had, also before this launcher started: an edge
 * that was taken over must not come back through a new launcher (THREATS I2). It lies in run/, as
 * no edge outlives a boot either.
 */
#ifndef LAUNCHER_EPOCH_H
#define LAUNCHER_EPOCH_H

#include <stdint.h>

/* Returns 0 or a negative errno. */
int epoch_load(uint32_t *epoch);
int epoch_store(uint32_t epoch);

#endif
