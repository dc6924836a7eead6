import type { Finding, Repository, RepositoryFile, Rule } from './repository.ts';

const FILE_BYTES_MAX = 1 << 20;
const LARGE_FILES = new Set(['package-lock.json', 'spec/openapi.json']);

export const filesAreSmall: Rule = {
  name: 'no file is larger than 1 MiB',
  check(repository) {
    const findings = [...repository.files.values()]
      .filter(({ path, bytes }) => bytes.length > FILE_BYTES_MAX && !LARGE_FILES.has(path))
      .map(({ path, bytes }) => ({
        path,
        line: 1,
        message: `${bytes.length} bytes: make it when it is needed, or keep a smaller sample`,
      }));
    return { looked: repository.files.size, findings };
  },
};

export const filesAreText: Rule = {
  name: 'no binary files',
  check(repository) {
    const findings = [...repository.files.values()].filter(isBinary).map(({ path }) => ({
      path,
      line: 1,
      message:
        'not UTF-8 text: make it when it is needed, or write the bytes as hex in a text file',
    }));
    return { looked: repository.files.size, findings };
  },
};

function isBinary({ bytes, text }: RepositoryFile): boolean {
  return bytes.includes(0) || !Buffer.from(text).equals(bytes);
}

/** Homes that a sandbox or an image may have. */
const HOME_NAMES_ALLOWED = new Set(['user', 'agent', 'sandbox', 'dev']);
const HOME = /(?:\/home|\/Users)\/([A-Za-z][\w.-]*)\//g;

/** The repository speaks of the project alone, not of the machine on which somebody works on it. */
export const noDeveloperPaths: Rule = {
  name: 'no absolute paths of a developer’s machine',
  check(repository) {
    const findings = [...repository.files.values()].flatMap((file) =>
      developerPaths(repository, file),
    );
    return { looked: repository.files.size, findings };
  },
};

function developerPaths({ root }: Repository, { path, text }: RepositoryFile): Finding[] {
  return text.split('\n').flatMap((content, index) => {
    const homes = [...content.matchAll(HOME)]
      .filter(([, name]) => !HOME_NAMES_ALLOWED.has(name ?? ''))
      .map(([found]) => found);
    const found = content.includes(`${root}/`) ? root : homes[0];
    if (found === undefined) return [];
    return [
      {
        path,
        line: index + 1,
        message: `${found} is a path of one machine: derive it from import.meta.url or a temporary folder`,
      },
    ];
  });
}

/** Composed, so that this file does not hold one. */
const CONFLICT = new RegExp(`^(${'<'.repeat(7)}|${'>'.repeat(7)}) `, 'm');

export const noConflictMarkers: Rule = {
  name: 'no markers of an unresolved merge',
  check(repository) {
    const findings = [...repository.files.values()]
      .filter(({ text }) => CONFLICT.test(text))
      .map(({ path }) => ({ path, line: 1, message: 'resolve the merge and remove its markers' }));
    return { looked: repository.files.size, findings };
  },
};
