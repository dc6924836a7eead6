import { KVM_STARTED, probeKvm } from './kvm-probe.ts';
import { type MountProbeInput, probeMounts } from './mount-probe.ts';

/**
 * Entry point of the process in which `probeHost` tries what may hang or must not touch the host's mount
 * table. Takes the name of a probe and its input as JSON; prints one JSON value. The parent kills it when
 * it takes too long.
 */
const [probe, input = '{}'] = process.argv.slice(2);
if (probe === 'mounts') {
  console.log(JSON.stringify(await probeMounts(JSON.parse(input) as MountProbeInput)));
} else if (probe === 'kvm') {
  process.stdout.write(KVM_STARTED, () => console.log(JSON.stringify(probeKvm())));
} else {
  console.error('probe child: name a probe, mounts or kvm');
  process.exitCode = 2;
}
