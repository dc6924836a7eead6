import type { Rule } from './repository.ts';
import { noFileCycles, noPackageCycles } from './rule-cycles.ts';
import {
  filesAreSmall,
  filesAreText,
  noConflictMarkers,
  noDeveloperPaths,
} from './rule-hygiene.ts';
import { everyFileIsUsed, importsPointDown, importsResolve } from './rule-imports.ts';
import {
  dependenciesAreImports,
  outsideImportsAreDeclared,
  referencesAreDependencies,
} from './rule-manifests.ts';
import { columnCount, fileLength, functionLength } from './rule-size.ts';
import { noHiddenTests, noMarkers } from './rule-words.ts';

/** The house rules. CONTRIBUTING.md says what they are for. */
export const RULES: readonly Rule[] = [
  fileLength,
  columnCount,
  functionLength,
  everyFileIsUsed,
  importsResolve,
  importsPointDown,
  noFileCycles,
  noPackageCycles,
  dependenciesAreImports,
  outsideImportsAreDeclared,
  referencesAreDependencies,
  noMarkers,
  noHiddenTests,
  filesAreSmall,
  filesAreText,
  noDeveloperPaths,
  noConflictMarkers,
];
