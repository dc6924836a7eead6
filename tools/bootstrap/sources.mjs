// @ts-check

/**
 * @typedef {object} AptSource One archive that apt is configured to use.
 * @property {string} uri
 * @property {string[]} suites
 * @property {string[]} components
 * @property {Map<string, string>} options deb822 field → value: Signed-By, Architectures, Trusted.
 */

/** One-line option → deb822 field. */
const OPTION_FIELDS = new Map([
  ['signed-by', 'Signed-By'],
  ['arch', 'Architectures'],
  ['trusted', 'Trusted'],
]);

/**
 * The file that makes apt know a backports suite, derived from how the main archive is configured (so
 * that a mirror and its keyring are kept).
 *
 * @param {readonly { path: string, text: string }[]} files Those of /etc/apt/sources.list and sources.list.d.
 * @param {string} codename
 * @returns {{ configured: boolean, text?: string }} `text` is absent when the main archive was not found.
 */
export function deriveBackports(files, codename) {
  const sources = files.flatMap((file) =>
    file.path.endsWith('.sources') ? parseDeb822(file.text) : parseOneLine(file.text),
  );
  const suite = `${codename}-backports`;
  const offers = (/** @type {AptSource} */ source, /** @type {string} */ wanted) =>
    source.suites.includes(wanted) && source.components.includes('main');
  if (sources.some((source) => offers(source, suite))) return { configured: true };
  const main = sources.find((source) => offers(source, codename));
  if (main === undefined) return { configured: false };
  const options = [...main.options].map(([field, value]) => `${field}: ${value}\n`).join('');
  return {
    configured: false,
    text:
      '# Written by DSec (tools/bootstrap.mjs) for a newer QEMU and the kernel of its test lab.\n' +
      '# apt takes nothing from it unless asked to.\n' +
      `Types: deb\nURIs: ${main.uri}\nSuites: ${suite}\nComponents: main\n${options}`,
  };
}

/**
 * @param {string} text
 * @returns {AptSource[]}
 */
export function parseOneLine(text) {
  const sources = [];
  for (const line of text.split('\n')) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line);
    if (match === null) continue;
    const [, optionText = '', uri = '', suite = '', components = ''] = match;
    const options = new Map();
    for (const option of optionText.split(/\s+/)) {
      const [key = '', value = ''] = option.split('=');
      const field = OPTION_FIELDS.get(key.toLowerCase());
      if (field !== undefined) options.set(field, value.replaceAll(',', ' '));
    }
    sources.push({
      uri,
      suites: [suite],
      components: components.split(/\s+/).filter(Boolean),
      options,
    });
  }
  return sources;
}

/**
 * @param {string} text
 * @returns {AptSource[]}
 */
export function parseDeb822(text) {
  const sources = [];
  const lines = text.split('\n').filter((line) => !line.startsWith('#'));
  for (const stanza of lines.join('\n').split(/\n\s*\n/)) {
    const fields = parseFields(stanza);
    const words = (/** @type {string} */ name) =>
      (fields.get(name) ?? '').split(/\s+/).filter(Boolean);
    if (!words('types').includes('deb') || fields.get('enabled') === 'no') continue;
    const options = new Map();
    for (const field of OPTION_FIELDS.values()) {
      const value = fields.get(field.toLowerCase());
      if (value !== undefined) options.set(field, value);
    }
    for (const uri of words('uris')) {
      sources.push({ uri, suites: words('suites'), components: words('components'), options });
    }
  }
  return sources;
}

/**
 * The fields of one stanza, names in lower case; continued lines (an embedded key) are kept as they are.
 *
 * @param {string} stanza
 * @returns {Map<string, string>}
 */
function parseFields(stanza) {
  const fields = new Map();
  let name = '';
  for (const line of stanza.split('\n')) {
    const match = /^([A-Za-z-]+):\s*(.*)$/.exec(line);
    if (match?.[1] !== undefined) {
      name = match[1].toLowerCase();
      fields.set(name, (match[2] ?? '').trim());
    } else if (/^\s/.test(line) && name !== '') {
      fields.set(name, `${fields.get(name)}\n${line.trimEnd()}`);
    }
  }
  return fields;
}
