import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkApplianceName } from '../../src/core/appliances/appliance.ts';
import { deriveApplianceName } from '../../src/core/appliances/registration.ts';

const free = () => false;

test.each([
  ['Wallbox', 'wallbox'],
  ['Heat Pump (cellar)', 'heat-pump-cellar'],
  ['Wärmepumpe', 'warmepumpe'],
  ['ﬁlter №5', 'filter-no5'],
  ['  --x--  ', 'x'],
  ['a\r\nX-Injected: 1', 'a-x-injected-1'],
  ['../../etc/passwd', 'etc-passwd'],
  ['"; rm -rf /', 'rm-rf'],
  ['\u001b[31mred', '31mred'],
  ['\u202egnirts', 'gnirts'],
  ['💡', 'appliance'],
  ['洗濯機', 'appliance'],
  ['\u0000', 'appliance'],
  ['', 'appliance'],
  [null, 'appliance'],
  ['x'.repeat(10_000), 'x'.repeat(63)],
  [`${'x'.repeat(62)} y`, 'x'.repeat(62)],
  ['__proto__', 'proto'],
])('the client_name %j becomes the appliance name %s', (clientName, name) => {
  expect(deriveApplianceName(clientName, free)).toBe(name);
});

test('an appliance name that is taken gets the first free number', () => {
  const taken = new Set(['wallbox', 'wallbox-2', 'wallbox-4']);
  expect(deriveApplianceName('Wallbox', (name) => taken.has(name))).toBe('wallbox-3');
  const long = 'x'.repeat(63);
  expect(deriveApplianceName(long, (name) => name === long)).toBe(`${'x'.repeat(61)}-2`);
});

test('any client_name gives a valid and free appliance name', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 2000 }),
      fc.integer({ min: 0, max: 30 }),
      (clientName, count) => {
        const taken = new Set<string>();
        for (let number = 0; number <= count; number++) {
          const name = deriveApplianceName(clientName, (candidate) => taken.has(candidate));
          expect(checkApplianceName(name)).toBe(name);
          expect(taken.has(name)).toBe(false);
          taken.add(name);
        }
      },
    ),
    { numRuns: 200 },
  );
});
