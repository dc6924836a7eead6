/** A sandbox, a command, a file, and the output of something longer as it comes. */
import { Sandbox } from '@dsec/libdsec';

const environment = process.argv[2] ?? 'example';

await using sandbox = await Sandbox.create({ environment });
console.log(`${sandbox.id} is ${sandbox.state}`);

const greeting = await sandbox.exec(['echo', 'hello', 'world']);
process.stdout.write(greeting.stdout);

await sandbox.files.write('/work/notes.txt', 'written from outside\n');
process.stdout.write(await sandbox.files.readText('/work/notes.txt'));

const command = await sandbox.start('echo one; echo two; exit 3');
for await (const { stream, data } of command.stream()) {
  process.stdout.write(`${stream}: ${Buffer.from(data).toString()}`);
}
const { exitCode } = await command.wait();
console.log(`it exited with ${exitCode}`);
