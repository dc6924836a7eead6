/**
 * The levels of the packages. Imports only point to a lower number, and packages of one level do not
 * import each other. A new package gets a row here before anything else.
 */
export const LEVELS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    std: 0,
    protocol: 1,
    erofs: 2,
    linux: 2,
    transport: 2,
    store: 2,
    placement: 2,
    layers: 3,
    blobd: 3,
    policy: 3,
    network: 3,
    backend: 3,
    libdsec: 3,
    'backend-container': 4,
    'backend-fncall': 4,
    'backend-vm': 4,
    iam: 4,
    watcher: 4,
    rollout: 4,
    edge: 5,
    apiserver: 5,
    e2b: 5,
    dsec: 6,
    dashboard: 6,
  }),
);

/** The scope of our own packages. */
export const SCOPE = '@dsec/';
