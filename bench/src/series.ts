import { type Metric, metric } from './report.ts';

/** Collects the values of each figure over the runs. */
export interface Series {
  /** A figure that a contestant does not have is left out. */
  add(name: string, value: number | undefined): void;
  metrics(): Metric[];
}

export interface FigureForm {
  readonly unit: string;
  readonly better: Metric['better'];
}

/** The unit is the end of a name. Goals are by name. */
export function createSeries(
  goals: Readonly<Record<string, number>>,
  formOf: (name: string) => FigureForm = formOfName,
): Series {
  const values = new Map<string, number[]>();
  return {
    add(name, value) {
      if (value === undefined) return;
      const known = values.get(name);
      if (known === undefined) values.set(name, [value]);
      else known.push(value);
    },
    metrics() {
      return [...values].map(([name, all]) => {
        const { unit, better } = formOf(name);
        return metric(name, unit, better, all, goals[name]);
      });
    },
  };
}

const FORMS: readonly (readonly [suffix: string, unit: string, better: Metric['better']])[] = [
  ['mb_per_s', 'MB/s', 'higher'],
  ['per_s', '1/s', 'higher'],
  ['ms_per_life', 'ms', 'lower'],
  ['ms', 'ms', 'lower'],
  ['mib', 'MiB', 'lower'],
  ['kib_per_sandbox', 'KiB', 'lower'],
  ['kib', 'KiB', 'lower'],
  ['pct', '%', 'lower'],
  ['over_first', 'ratio', 'lower'],
  ['overcommit', 'ratio', 'higher'],
  ['leftovers', 'count', 'lower'],
  ['pooled_cgroups', 'count', 'lower'],
  ['count', 'count', 'higher'],
];

/** Throws for a name that does not end in a unit that is known. */
export function formOfName(name: string): FigureForm {
  const found = FORMS.find(([suffix]) => name.endsWith(suffix));
  if (found === undefined) throw new Error(`the figure ${name} has no unit`);
  const [, unit, better] = found;
  return { unit, better };
}
