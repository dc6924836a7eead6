import { describe, expect, it } from 'vitest';
import { itemsOf, type PageRequest, present } from '../src/pages.ts';
import { listed } from './support/fake-server.ts';

const NUMBERS = Array.from({ length: 10 }, (_, index) => index);

function pagesOf(requests: PageRequest[], most = Infinity) {
  return async (request: PageRequest) => {
    requests.push(request);
    const from = Number(request.cursor ?? 0);
    const to = from + Math.min(request.limit, most);
    return { items: NUMBERS.slice(from, to), cursor: to < NUMBERS.length ? String(to) : undefined };
  };
}

describe('itemsOf', () => {
  it('asks for the next page when it is needed, to the end', async () => {
    const requests: PageRequest[] = [];
    const items = itemsOf({ pageSize: 4 }, pagesOf(requests), (page) => page.items);
    expect(requests).toEqual([]);
    expect(await listed(items)).toEqual(NUMBERS);
    expect(requests).toEqual([{ limit: 4 }, { limit: 4, cursor: '4' }, { limit: 4, cursor: '8' }]);
  });

  it('yields no more than the limit, and asks for no more', async () => {
    const requests: PageRequest[] = [];
    const options = { pageSize: 4, limit: 6 };
    const items = await listed(itemsOf(options, pagesOf(requests), (page) => page.items));
    expect(items).toEqual([0, 1, 2, 3, 4, 5]);
    expect(requests.map(({ limit }) => limit)).toEqual([4, 2]);
    expect(await listed(itemsOf({ limit: 0 }, pagesOf(requests), (page) => page.items))).toEqual(
      [],
    );
  });

  it('goes on after pages that are shorter than asked for', async () => {
    const items = itemsOf({ pageSize: 5 }, pagesOf([], 1), (page) => page.items);
    expect(await listed(items)).toEqual(NUMBERS);
  });
});

describe('present', () => {
  it('leaves out what is undefined, and nothing else', () => {
    expect(present({ a: 0, b: undefined, c: '', d: false })).toEqual({ a: 0, c: '', d: false });
  });
});
