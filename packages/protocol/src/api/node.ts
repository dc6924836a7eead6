import Type, { type Static } from 'typebox';
import { count, listOfMax, mapOf, record, words } from '../names.ts';

const line = (maxLength = 1024) => Type.String({ maxLength });

export const Health = record('Health', {
  ok: Type.Boolean(),
  parts: listOfMax(
    record('HealthPart', { name: line(64), ok: Type.Boolean(), detail: Type.Optional(line()) }),
    32,
  ),
});
export type Health = Static<typeof Health>;

export const Version = record('Version', {
  version: line(64),
  api: Type.Literal('v1'),
  /** Of the frames between host and agent. */
  frames: count(),
});
export type Version = Static<typeof Version>;

const CheckStatus = words('CheckStatus', ['ok', 'degraded', 'missing', 'unknown']);

export const DoctorReport = record(
  'DoctorReport',
  {
    version: Type.Literal(1),
    takenAt: line(40),
    host: record('DoctorHost', {
      os: line(256),
      kernel: line(256),
      architecture: line(64),
      cpus: count(),
      memoryBytes: count(),
      uid: count(),
    }),
    checks: listOfMax(
      record('DoctorCheck', {
        id: line(128),
        group: line(64),
        status: CheckStatus,
        found: line(),
        neededFor: line(),
        remedy: line(),
      }),
      512,
    ),
    verdicts: mapOf(
      '^[a-z]{1,32}$',
      record('DoctorVerdict', {
        status: words('VerdictStatus', ['possible', 'degraded', 'impossible', 'unknown']),
        reasons: listOfMax(
          record('DoctorReason', { check: line(128), status: CheckStatus, why: line() }),
          512,
        ),
      }),
      16,
    ),
  },
  'What `dsec doctor --json` prints: one probe of a host.',
);
export type DoctorReport = Static<typeof DoctorReport>;
