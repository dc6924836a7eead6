/** The form in which the DSec report shows its SDK. */
import { DSecClient, DSecContainerRunArgs } from '@dsec/libdsec';

const client = new DSecClient();
await client.open();
const sandbox = await client.runContainer(
  new DSecContainerRunArgs({
    containerImage: process.argv[2] ?? 'example',
    memoryLimitMb: 256,
    cpuCoresLimit: 1,
    ttlRunningStop: 300,
    networkRules: {},
    initUser: 'root',
  }),
  { timeout: 120 },
);
const result = await sandbox.runShell('echo hello world');
process.stdout.write(result.stdout);
await sandbox.stop();
await client.close();
