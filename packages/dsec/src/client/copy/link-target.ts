/**
 * Whether a symbolic link stays below the directory that is copied, when it lies `depth` directories deep in
 * it, whatever other links of the copy it goes through: it is relative, it climbs no higher than the copy,
 * and it climbs only at its beginning, where no other link has been followed yet.
 */
export function staysBelow(target: Uint8Array, depth: number): boolean {
  const text = Buffer.from(target).toString('latin1');
  if (text === '' || text.startsWith('/')) return false;
  const steps = text.split('/').filter((step) => step !== '' && step !== '.');
  const climb = steps.findIndex((step) => step !== '..');
  const climbs = climb === -1 ? steps.length : climb;
  return climbs <= depth && !steps.slice(climbs).includes('..');
}
