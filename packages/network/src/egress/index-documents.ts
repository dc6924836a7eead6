/** Documents of package indexes, without what is newer than an instant. Data in, data out. */

export interface FilterTerms {
  readonly asOf: string | undefined;
  /** The address of the document, which relative ones in it start from. */
  readonly base: string;
}

export interface FilteredIndex {
  readonly document: unknown;
  /** Files that the document still names, as host and path. */
  readonly files: readonly string[];
  /** The same for clients that read no JSON. */
  html(): string;
}

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** What has no time that can be read counts as too new. */
function isOldEnough(time: unknown, asOf: string | undefined): boolean {
  return asOf === undefined || Date.parse(textOf(time)) <= Date.parse(asOf);
}

function placeOf(url: string, base: string): string | undefined {
  if (!URL.canParse(url, base)) return undefined;
  const { hostname, pathname } = new URL(url, base);
  return `${hostname}${pathname}`;
}

/** A project of the simple index as JSON (PEP 691), by the times of its files (PEP 700). */
export function filterPypi(document: unknown, { asOf, base }: FilterTerms): FilteredIndex {
  const whole = isRecord(document) ? document : {};
  const all = Array.isArray(whole.files) ? whole.files.filter(isRecord) : [];
  const kept = all.filter((file) => isOldEnough(file['upload-time'], asOf));
  const places = kept.flatMap((file) => placeOf(textOf(file.url), base) ?? []);
  return {
    // Versions are a matter of form 1.1, and would name those that are left out.
    document: { meta: { 'api-version': '1.0' }, name: whole.name, files: kept },
    files: places.flatMap((place) => [place, `${place}.metadata`]),
    html: () => pypiPage(kept),
  };
}

function pypiPage(files: readonly Json[]): string {
  const links = files.map((file) => {
    const hashes = isRecord(file.hashes) ? file.hashes : {};
    const hash = textOf(hashes.sha256);
    const url = `${textOf(file.url)}${hash === '' ? '' : `#sha256=${hash}`}`;
    const python = textOf(file['requires-python']);
    const requires = python === '' ? '' : ` data-requires-python="${escapeHtml(python)}"`;
    return `<a href="${escapeHtml(url)}"${requires}>${escapeHtml(textOf(file.filename))}</a><br>`;
  });
  return `<!DOCTYPE html><html><body>\n${links.join('\n')}\n</body></html>\n`;
}

const escapeHtml = (text: string) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** A package of an npm registry in its full form, which alone names times. */
export function filterNpm(document: unknown, { asOf, base }: FilterTerms): FilteredIndex {
  const whole = isRecord(document) ? document : {};
  const times = isRecord(whole.time) ? whole.time : {};
  const all = isRecord(whole.versions) ? Object.entries(whole.versions) : [];
  const kept = all.filter(([version]) => isOldEnough(times[version], asOf));
  const names = new Set(kept.map(([version]) => version));
  const files = kept.flatMap(([, manifest]) => {
    const dist = isRecord(manifest) && isRecord(manifest.dist) ? manifest.dist : {};
    return placeOf(textOf(dist.tarball), base) ?? [];
  });
  return {
    document: {
      ...{ _id: whole._id, name: whole.name, versions: Object.fromEntries(kept) },
      time: Object.fromEntries(Object.entries(times).filter(([version]) => names.has(version))),
      'dist-tags': npmTags(whole['dist-tags'], names, times),
    },
    files,
    html: () => '',
  };
}

/** Tags of versions that remain; `latest` then is the newest one that is no pre-release. */
function npmTags(tags: unknown, names: ReadonlySet<string>, times: Json): Record<string, string> {
  const all = isRecord(tags) ? Object.entries(tags) : [];
  const kept = Object.fromEntries(
    all.flatMap(([tag, version]) => (names.has(textOf(version)) ? [[tag, textOf(version)]] : [])),
  );
  if (kept.latest !== undefined || names.size === 0) return kept;
  const releases = [...names].filter((version) => !version.includes('-'));
  const byTime = (releases.length > 0 ? releases : [...names]).sort(
    (a, b) => Date.parse(textOf(times[b])) - Date.parse(textOf(times[a])),
  );
  return { ...kept, latest: byTime[0] ?? '' };
}
