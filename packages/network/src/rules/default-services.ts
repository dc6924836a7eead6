import type { OperatorNetwork, Service } from './operator-network.ts';

/**
 * What well-known services are called on the public Internet. An operator's map replaces single ones, or
 * points them to mirrors. `dsec` is not among them: a node knows where its own server is.
 */
export const DEFAULT_SERVICES: Readonly<Record<string, Service>> = {
  pypi: { names: ['pypi.org', 'files.pythonhosted.org'], index: 'pypi' },
  npm: { names: ['registry.npmjs.org'], index: 'npm' },
  apt: {
    names: [
      ...['deb.debian.org', 'security.debian.org', 'archive.ubuntu.com', 'security.ubuntu.com'],
      'ports.ubuntu.com',
    ],
    ports: [80, 443],
  },
  alpine: { names: ['dl-cdn.alpinelinux.org'], ports: [80, 443] },
  go: { names: ['proxy.golang.org', 'sum.golang.org'] },
  crates: { names: ['crates.io', 'index.crates.io', 'static.crates.io'] },
  maven: { names: ['repo.maven.apache.org', 'repo1.maven.org'] },
  rubygems: { names: ['rubygems.org', 'index.rubygems.org'] },
  conda: { names: ['conda.anaconda.org', 'repo.anaconda.com'] },
  yarn: { names: ['registry.yarnpkg.com'], index: 'npm' },
  git: { names: ['github.com', 'codeload.github.com', 'gitlab.com', 'bitbucket.org'] },
};

/** The services of an operator: its own, and the well-known ones that it does not replace or leave out. */
export function servicesOf(operator: OperatorNetwork): ReadonlyMap<string, Service> {
  const known = operator.withoutDefaults === true ? {} : DEFAULT_SERVICES;
  return new Map(Object.entries({ ...known, ...operator.services }));
}
