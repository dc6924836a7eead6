/*
 * The end of pooled cgroups. They outlive sandboxes, to be used again; a launcher that ends in
 * peace leaves those alone that are still in use.
 */
#ifndef LAUNCHER_POOLS_H
#define LAUNCHER_POOLS_H

/* Also removes the edge's own cgroups, and the launcher's among them, when nothing else is in them.
 */
void pools_remove(void);

#endif
