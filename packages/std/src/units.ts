export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** `1536` → `1.5 KiB`. For people; programs get the number. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** `90500` → `1m 30s`, `850` → `850 ms`. For people; programs get the number. */
export function formatDuration(ms: number): string {
  if (ms < SECOND_MS) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${(ms / SECOND_MS).toFixed(1)} s`;
  if (ms < HOUR_MS)
    return `${Math.floor(ms / MINUTE_MS)}m ${Math.floor((ms % MINUTE_MS) / SECOND_MS)}s`;
  return `${Math.floor(ms / HOUR_MS)}h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)}m`;
}
