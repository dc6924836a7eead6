/** What the fuzz suite reaches beside the package's public face. */
export { createPace } from '../../src/sources/pace.ts';
export { importTar } from '../../src/sources/tar.ts';
