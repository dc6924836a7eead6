// @ts-check

/**
 * @typedef {object} KernelChoice
 * @property {string} release As `uname -r` prints it.
 * @property {string} image The package with the kernel.
 * @property {string[]} modules Further packages that hold modules of it, where the distribution splits
 *   them off.
 */

/** Series of Linux that the lab is for; newer ones serve where a distribution does not have it. */
export const SERIES_WANTED = [6, 12];

const NAMES = [
  /^linux-image-(?<release>(?<version>\d+\.\d+\.\d+[\w.+~]*(?:-\d+)?)-cloud-amd64)$/,
  /^linux-image-(?:unsigned-)?(?<release>(?<version>\d+\.\d+\.\d+-\d+)-generic)$/,
];

/**
 * Picks the newest kernel of the wanted series, else the newest of the nearest series after it: the older
 * the kernel, the more of the 6.12 paths it exercises.
 *
 * @param {readonly string[]} names Names of packages: images and modules.
 * @returns {KernelChoice | undefined} Undefined when there is none of the series or newer.
 */
export function chooseKernel(names) {
  const known = new Set(names);
  const candidates = names.flatMap((image) => {
    const groups = NAMES.map((name) => name.exec(image)?.groups).find(Boolean);
    const { release, version } = groups ?? {};
    if (release === undefined || version === undefined) return [];
    return [{ image, release, numbers: (version.match(/\d+/g) ?? []).map(Number) }];
  });
  const [best] = candidates
    .filter((candidate) => compare(candidate.numbers.slice(0, 2), SERIES_WANTED) >= 0)
    .sort(
      (a, b) =>
        compare(a.numbers.slice(0, 2), b.numbers.slice(0, 2)) || compare(b.numbers, a.numbers),
    );
  if (best === undefined) return undefined;
  const modules = ['linux-modules', 'linux-modules-extra']
    .map((prefix) => `${prefix}-${best.release}`)
    .filter((name) => known.has(name));
  return { release: best.release, image: best.image, modules };
}

/**
 * @param {readonly number[]} a
 * @param {readonly number[]} b
 */
function compare(a, b) {
  const length = Math.max(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
