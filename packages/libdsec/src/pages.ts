/** What every listing can be given. */
export interface ListOptions {
  /** The most items that are yielded; absent: all. */
  readonly limit?: number | undefined;
  /** How many are asked for at a time; absent: as many as are useful. */
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface Page {
  readonly cursor?: string | undefined;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

const PAGE_SIZE = 500;

/** The items of a listing, page by page as they are taken. */
export async function* itemsOf<P extends Page, Item>(
  { limit = Infinity, pageSize = PAGE_SIZE }: ListOptions,
  read: (request: PageRequest) => Promise<P>,
  itemsIn: (page: P) => readonly Item[],
): AsyncGenerator<Item> {
  let left = limit;
  let cursor: string | undefined;
  while (left > 0) {
    const size = Math.min(pageSize, left);
    const page = await read({ limit: size, ...(cursor === undefined ? {} : { cursor }) });
    for (const item of itemsIn(page)) {
      if (left === 0) return;
      left -= 1;
      yield item;
    }
    cursor = page.cursor;
    if (cursor === undefined) return;
  }
}

/** Without what is absent, as the wire wants it. */
export function present<T extends object>(values: T): Present<T> {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Present<T>;
}

/** Properties that may be absent, and are never `undefined`. */
export type Present<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};
