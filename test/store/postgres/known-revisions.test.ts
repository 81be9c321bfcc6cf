import { expect, test } from 'vitest';
import { KnownRevisions } from '../../../src/store/postgres/tables/revisions.ts';

interface Row {
  readonly id: string;
  readonly revision: number;
}

/** A table, and what a hub knows about it. */
class KnownTable {
  readonly known = new KnownRevisions();
  readonly rows = new Map<string, number>();
  /** The ids of each query; null for all rows. */
  readonly queries: (readonly string[] | null)[] = [];
  /** What happens between the snapshot of each query and its end. */
  readonly meanwhile: (() => void)[] = [];

  write(id: string, revision: number): void {
    this.rows.set(id, revision);
    this.known.wrote(id, revision);
  }

  remove(id: string): void {
    this.rows.delete(id);
    this.known.removed(id);
  }

  async readAll(): Promise<string[]> {
    const rows = await this.known.read<Row>(
      null,
      async (ids) => {
        this.queries.push(ids && [...ids]);
        const found = [...this.rows].filter(([id]) => ids === null || ids.has(id));
        this.meanwhile.shift()?.();
        return found.map(([id, revision]) => ({ id, revision }));
      },
      ({ id }) => id,
    );
    return rows.map(({ id, revision }) => `${id} ${revision}`);
  }
}

test('a read reads only those rows again that are written or removed meanwhile', async () => {
  const table = new KnownTable();
  for (const id of ['a', 'b', 'c']) table.write(id, 1);
  table.meanwhile.push(
    () => {
      table.write('b', 2);
      table.remove('c');
      table.write('d', 1);
    },
    () => table.write('a', 2),
  );
  expect(await table.readAll()).toEqual(['a 2', 'b 2', 'd 1']);
  expect(table.queries).toEqual([null, ['b', 'c', 'd'], ['a']]);
});

test('rows that this hub or another one has removed are forgotten', async () => {
  const table = new KnownTable();
  for (const id of ['a', 'b', 'c']) table.write(id, 1);
  table.remove('a');
  expect(table.known.has('a')).toBe(false);
  table.rows.delete('b');
  table.meanwhile.push(() => table.remove('c'));
  expect(await table.readAll()).toEqual([]);
  expect(['b', 'c'].filter((id) => table.known.has(id))).toEqual([]);
});

test('a row that is written during each of its reads is read until a read ends without a write', async () => {
  const table = new KnownTable();
  table.write('a', 1);
  table.meanwhile.push(...[2, 3, 4].map((revision) => () => table.write('a', revision)));
  expect(await table.readAll()).toEqual(['a 4']);
  expect(table.queries).toEqual([null, ['a'], ['a'], ['a']]);
});

test('rows of a database that has lost writes are read once', async () => {
  const table = new KnownTable();
  table.write('a', 2);
  table.rows.set('a', 1);
  expect(await table.readAll()).toEqual(['a 1']);
  expect(table.queries).toEqual([null]);
});
