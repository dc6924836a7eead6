import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ImportInvalidError, type LayerImportEvent, ProtocolError } from '../src/index.ts';
import { clientOf, joined, piecesOf, stopLater } from './support/fake-server.ts';

const DIGEST = `sha256:${'0'.repeat(64)}`;
const LAYER = {
  ...{ layerId: DIGEST, treeDigest: DIGEST, metaBytes: 1, entries: 1, contentBytes: 1 },
  ...{ storedBytes: 1, sharedBytes: 0, devices: [] },
};
const progress = { entries: 1, contentBytes: 1 };

describe('importLayer', () => {
  it('sends a local file, again if need be, and yields the layer', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dsec-layers-'));
    stopLater(async () => rmSync(directory, { recursive: true }));
    const archive = join(directory, 'a.tar');
    writeFileSync(archive, 'x'.repeat(1_000_000));
    let attempts = 0;
    const client = await clientOf({
      async importLayer({ query, body }) {
        attempts += 1;
        expect(query).toEqual({ format: 'tar', ref: 'base/x:1.0.0' });
        expect((await joined(body)).length).toBe(1_000_000);
        const isLost = attempts === 1;
        return (async function* () {
          yield progress;
          if (isLost) throw new Error('the server is gone');
          yield { ...progress, layer: LAYER };
        })();
      },
    });
    const seen: number[] = [];
    const onProgress = ({ entries }: { entries: number }) => void seen.push(entries);
    const layer = await client.layers.importLayer(archive, 'base', 'x', '1.0.0', { onProgress });
    expect(layer).toEqual(LAYER);
    expect(attempts).toBe(2);
    expect(seen.length).toBeGreaterThan(1);
  });

  it('throws what was wrong with the archive, and does not take silence for success', async () => {
    const error = { message: 'no tar', retryable: false, remedy: 'r', details: {} };
    let lines: LayerImportEvent[] = [
      progress,
      { ...progress, error: { ...error, code: 'import-invalid' } },
    ];
    const client = await clientOf({
      async importLayer({ body }) {
        await joined(body);
        return (async function* () {
          yield* lines;
        })();
      },
    });
    const send = () =>
      client.layers.importLayer(piecesOf(Buffer.from('abc'), 1), 'base', 'x', '1.0.0');
    await expect(send()).rejects.toBeInstanceOf(ImportInvalidError);
    lines = [progress];
    await expect(send()).rejects.toBeInstanceOf(ProtocolError);
  });
});
