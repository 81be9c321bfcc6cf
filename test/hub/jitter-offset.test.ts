import { expect, test } from 'vitest';
import { jitterOffsetFor } from '../../src/hub/identity.ts';

test('the jitter offsets of many hubs are spread evenly from 0 to 1, and each is constant', () => {
  const tenths = new Array<number>(10).fill(0);
  for (let hub = 0; hub < 1000; hub += 1) {
    const offset = jitterOffsetFor(`latchkey-${hub}`, 'wallbox');
    expect(jitterOffsetFor(`latchkey-${hub}`, 'wallbox')).toBe(offset);
    const tenth = Math.floor(10 * offset);
    tenths[tenth] = (tenths[tenth] ?? 0) + 1;
  }
  expect(Math.min(...tenths), String(tenths)).toBeGreaterThan(60);
  expect(Math.max(...tenths), String(tenths)).toBeLessThan(140);
});
