import { formatLayerRef, openLayerStore, parseLayerRef, removeRef } from '@dsec/layers';
import type { Invocation } from '../command-line/invocation.ts';
import { checkStateDirectories } from '../config.ts';
import { printJson } from '../output.ts';

export async function run({ args: [text = ''], json, paths }: Invocation): Promise<void> {
  const ref = parseLayerRef(text);
  checkStateDirectories(paths);
  await removeRef(await openLayerStore(paths.store), ref);
  if (json) printJson({ removed: formatLayerRef(ref) });
  else process.stdout.write(`removed ${formatLayerRef(ref)}\n`);
}
