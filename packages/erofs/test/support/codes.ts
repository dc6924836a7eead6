import { DsecError } from '@dsec/std';
import type { BuilderOptions, LayerBuilder } from '../../src/index.ts';
import { build } from './layers.ts';

/** How an action fails, as `code: message`. */
export function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (thrown) {
    if (thrown instanceof DsecError) return `${thrown.code}: ${thrown.message}`;
    throw thrown;
  }
  return 'nothing thrown';
}

export function codeOfFill(
  fill: (builder: LayerBuilder) => void,
  options: Partial<BuilderOptions> = {},
): string {
  return codeOf(() => build(fill, options));
}
