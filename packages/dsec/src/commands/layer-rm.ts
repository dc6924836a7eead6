import { formatLayerRef, openLayerStore, parseLayerRef, removeRef } from '@dsec/layers';
import { hasLayerServer, withClient } from '../client/connect.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { checkStateDirectories } from '../config.ts';
import { printJson } from '../output.ts';

export async function run({ args, json, paths, settings }: Invocation): Promise<void> {
  const [text = ''] = args;
  const ref = parseLayerRef(text);
  if (hasLayerServer(settings)) {
    await withClient(settings, async ({ layers }) => {
      // The removal itself may be repeated, and takes one that is gone as well.
      await layers.resolve(formatLayerRef(ref));
      await layers.untag(ref.kind, ref.name, ref.version);
    });
  } else {
    checkStateDirectories(paths);
    await removeRef(await openLayerStore(paths.store), ref);
  }
  if (json) printJson({ removed: formatLayerRef(ref) });
  else process.stdout.write(`removed ${formatLayerRef(ref)}\n`);
}
