export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `1536` → `1.5 KiB`. For people; programs get the number. */
export function formatBytes(bytes: number): string {
  let text = String(bytes);
  let unit = 0;
  for (
    let value = bytes;
    Math.abs(Number(text)) >= 1024 && unit < BYTE_UNITS.length - 1;
    unit += 1
  ) {
    value /= 1024;
    text = value.toFixed(Math.abs(value) >= 99.95 ? 0 : 1);
  }
  return `${text} ${BYTE_UNITS[unit]}`;
}

/** `90500` → `1m 30s`, `850` → `850 ms`. For people; programs get the number. */
export function formatDuration(ms: number): string {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (Math.round(ms) < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS - 50) return `${(ms / SECOND_MS).toFixed(1)} s`;
  const seconds = Math.max(60, Math.floor(ms / SECOND_MS));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${seconds % 60}s`;
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}
