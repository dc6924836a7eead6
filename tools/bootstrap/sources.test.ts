import { describe, expect, it } from 'vitest';
import { deriveBackports, parseDeb822, parseOneLine } from './sources.mjs';

const ONE_LINE = {
  path: '/etc/apt/sources.list',
  text: `# comment
deb-src http://mirror.test/debian bookworm main
deb [arch=amd64,arm64 signed-by=/keys/debian.gpg] http://mirror.test/debian bookworm main contrib # ours
deb http://mirror.test/debian-security bookworm-security main
`,
};

const DEB822 = {
  path: '/etc/apt/sources.list.d/debian.sources',
  text: `Types: deb deb-src
# a comment inside a stanza
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
`,
};

describe('parseOneLine', () => {
  it('reads options, suites and components, and leaves out sources and comments', () => {
    const [first, second, ...rest] = parseOneLine(ONE_LINE.text);
    expect(rest).toEqual([]);
    expect(first).toEqual({
      uri: 'http://mirror.test/debian',
      suites: ['bookworm'],
      components: ['main', 'contrib'],
      options: new Map([
        ['Architectures', 'amd64 arm64'],
        ['Signed-By', '/keys/debian.gpg'],
      ]),
    });
    expect(second?.suites).toEqual(['bookworm-security']);
  });
});

describe('parseDeb822', () => {
  it('reads stanzas, keeps an embedded key and leaves out disabled ones', () => {
    const stanza = 'Enabled: no\nTypes: deb\nURIs: http://x.test\nSuites: a\nComponents: main\n';
    const disabled = `${DEB822.text}\n${stanza}`;
    const sources = parseDeb822(disabled);
    expect(sources.map(({ uri }) => uri)).toEqual([
      'http://mirror.test/debian',
      'http://mirror.test/debian-security',
    ]);
    expect(sources[0]?.options.get('Signed-By')).toContain('\n mQINBF\n');
  });
});

describe('deriveBackports', () => {
  it.each([
    ['one-line', ONE_LINE, 'Architectures: amd64 arm64\nSigned-By: /keys/debian.gpg\n'],
    ['deb822', DEB822, 'Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n'],
  ])('keeps mirror and keyring of a %s source', (_form, file, options) => {
    const { configured, text } = deriveBackports([file], 'bookworm');
    expect(configured).toBe(false);
    expect(text).toContain(
      `Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm-backports\nComponents: main\n${options}`,
    );
    // What is written is understood again, and then nothing more is to do.
    const written = { path: '/x/dsec.sources', text: text ?? '' };
    expect(deriveBackports([file, written], 'bookworm')).toEqual({ configured: true });
  });

  it('has nothing to derive from when the release is not configured', () => {
    expect(deriveBackports([ONE_LINE], 'trixie')).toEqual({ configured: false });
  });
});
