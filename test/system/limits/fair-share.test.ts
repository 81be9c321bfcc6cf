import { describe, expect, it } from 'vitest';
import { admit, type Quota } from '../../../src/system/limits/fair-share.ts';

/** The limits in total, per network and per device. */
const LIMITS = [12, 6, 3];

/** The current holders, the oldest first. */
class Pool {
  #holders: { readonly name: string; readonly keys: readonly string[] }[] = [];

  get names(): string[] {
    return this.#holders.map(({ name }) => name);
  }

  /** Tries to add a holder. @param path its keys, such as `network/device` @returns whether it was admitted */
  add(path: string, name = path): boolean {
    const keys = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
    const limits = keys.length === 1 ? [LIMITS[0], LIMITS[2]] : LIMITS;
    const quotas: Quota[] = ['all', ...keys].map((key, index) => ({ key, limit: limits[index] ?? 0 }));
    const admission = admit(quotas, this.#holders);
    if (admission.kind === 'full') return false;
    if (admission.kind === 'instead_of') {
      this.#holders = this.#holders.filter((holder) => holder !== admission.holder);
    }
    this.#holders.push({ name, keys: ['all', ...keys] });
    return true;
  }

  fill(...paths: string[]): void {
    for (const path of paths) for (let index = 0; index < 3; index++) this.add(path, `${path} ${index}`);
  }
}

describe('fair share of a limited number of places', () => {
  it('each device gets at most its own limit of places', () => {
    const pool = new Pool();
    expect([1, 2, 3, 4].map(() => pool.add('a'))).toEqual([true, true, true, false]);
    expect(pool.add('b')).toBe(true);
  });

  it('if all places are taken, the oldest place of the device with the most goes to a new device', () => {
    const pool = new Pool();
    pool.fill('a', 'b', 'c', 'd');
    expect(pool.add('honest')).toBe(true);
    expect(pool.names).not.toContain('a 0');
    expect(pool.add('another')).toBe(true);
    expect(pool.names).not.toContain('b 0');
    expect(pool.names).toHaveLength(12);
  });

  it('a device that lost a place does not get it back from one with fewer, and none loses its only place', () => {
    const pool = new Pool();
    pool.fill('a', 'b', 'c', 'd');
    for (let device = 0; device < 8; device++) expect(pool.add(`honest-${device}`)).toBe(true);
    expect(pool.names.filter((name) => name.startsWith('honest'))).toHaveLength(8);
    for (const device of ['a', 'b', 'honest-1', 'late']) expect(pool.add(device), device).toBe(false);
  });

  it('a full network gives a place to a new device from its own devices, not from another network', () => {
    const pool = new Pool();
    pool.fill('net/a', 'net/b', 'else');
    expect(pool.add('net/honest')).toBe(true);
    expect(pool.names).not.toContain('net/a 0');
    expect(pool.names.filter((name) => name.startsWith('net'))).toHaveLength(6);
    expect(pool.names.filter((name) => name.startsWith('else'))).toHaveLength(3);
  });

  it('a network that holds places with many addresses loses one to another network', () => {
    const pool = new Pool();
    for (let address = 0; address < 6; address++) pool.add(`net/${address}`);
    pool.fill('a', 'b');
    expect(pool.add('a'), 'beyond its own quota').toBe(false);
    expect(pool.add('honest')).toBe(true);
    expect(pool.names).not.toContain('net/0');
    expect(pool.add('net/6')).toBe(false);
  });

  it('honest devices keep their places, whatever a device with many addresses does', () => {
    const pool = new Pool();
    for (const device of ['x', 'y', 'net/z']) pool.add(device);
    for (let index = 0; index < 300; index++) pool.add(`net/${(index * 7) % 50}`, 'greedy');
    expect(pool.names).toEqual(expect.arrayContaining(['x', 'y', 'net/z']));
    for (let index = 0; index < 300; index++) pool.add(`${(index * 7) % 50}`, 'greedy');
    expect(pool.names).toEqual(expect.arrayContaining(['x', 'y']));
    expect(pool.names).toHaveLength(12);
  });
});
