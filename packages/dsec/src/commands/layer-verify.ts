import {
  type LayerStore,
  openLayerStore,
  parseLayerSelector,
  resolveRef,
  verifyLayer,
} from '@dsec/layers';
import { asDsecError, type Digest, DsecError, type ErrorCode, formatBytes } from '@dsec/std';
import type { Invocation } from '../command-line/invocation.ts';
import { checkStateDirectories } from '../config.ts';
import { createByteProgress, printJson } from '../output.ts';
import { withInterrupt } from './interrupt.ts';
import { endWithProblems, type LayerProblem, problemOf } from './layer-problems.ts';

export async function run({ args: refs, json, paths }: Invocation): Promise<void> {
  for (const text of refs) parseLayerSelector(text);
  checkStateDirectories(paths);
  await verifyAll(await openLayerStore(paths.store), refs, json);
}

interface SoundLayer {
  readonly ref: string;
  readonly layerId: Digest;
  readonly checkedBytes: number;
}

/** What is wrong with one layer says nothing of the next. Anything else ends the command. */
const PROBLEM_CODES: readonly ErrorCode[] = ['data-loss', 'layer-invalid', 'not-found'];

async function verifyAll(store: LayerStore, refs: readonly string[], json: boolean): Promise<void> {
  const layers: SoundLayer[] = [];
  const problems: LayerProblem[] = [];
  for (const text of refs) {
    try {
      const sound = await verifyOne(store, text);
      layers.push(sound);
      if (json) continue;
      process.stdout.write(`${sound.ref}: ${formatBytes(sound.checkedBytes)} checked, sound\n`);
    } catch (thrown) {
      const error = asDsecError(thrown);
      if (!PROBLEM_CODES.includes(error.code)) throw error;
      problems.push(problemOf(String(error.details.ref ?? text), error));
    }
  }
  if (json) printJson({ layers, problems });
  endWithProblems(problems, json);
}

/** Throws what is wrong with the layer, with the ref that the selector means in `details.ref`. */
async function verifyOne(store: LayerStore, text: string): Promise<SoundLayer> {
  const { ref, layerId } = await resolveRef(store, text);
  const progress = createByteProgress(`verify ${ref}`);
  try {
    const { checkedBytes, problems } = await withInterrupt((signal) =>
      verifyLayer(store, layerId, {
        signal,
        onProgress: ({ bytes, bytesTotal }) => progress.update(bytes, bytesTotal ?? undefined, ''),
      }),
    );
    const [first] = problems;
    if (first === undefined) return { ref, layerId, checkedBytes };
    const all = problems.map(({ message }) => message).join('; ');
    throw new DsecError(first.code, all);
  } catch (thrown) {
    const { code, message } = asDsecError(thrown);
    // The name exists, so the layer that it promises is lost.
    const told = code === 'not-found' ? 'data-loss' : code;
    throw new DsecError(told, message, { cause: thrown, details: { ref } });
  } finally {
    progress.finish();
  }
}
