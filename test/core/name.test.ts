import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkName, checkTitle, deriveNamed, findNamed, getNamed } from '../../src/core/name.ts';

const free = () => false;

test.each([
  ['Wallbox', 'wallbox'],
  ['Heat Pump (cellar)', 'heat-pump-cellar'],
  ['Wärmepumpe', 'waermepumpe'],
  ['WA\u0308RME o\u0308L KÜCHE Straße', 'waerme-oel-kueche-strasse'],
  ['Café Ñandú', 'cafe-nandu'],
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
  ['Außenlicht', 'aussenlicht'],
  ['x'.repeat(10_000), 'x'.repeat(63)],
  [`${'x'.repeat(62)} y`, 'x'.repeat(62)],
  ['__proto__', 'proto'],
])('an appliance that is called %j gets the name %s', (title, name) => {
  expect(deriveNamed(title, 'appliance', free).name).toBe(name);
});

test('an appliance name that is taken gets the first free number, and so does the title', () => {
  const taken = new Set(['wallbox', 'wallbox-2', 'wallbox-4']);
  expect(deriveNamed('Wallbox', 'appliance', (name) => taken.has(name)).name).toBe('wallbox-3');
  const long = 'x'.repeat(63);
  expect(deriveNamed(long, 'appliance', (name) => name === long).name).toBe(`${'x'.repeat(61)}-2`);
  expect(deriveNamed('Wärmepumpe', 'appliance', (name) => name === 'waermepumpe')).toEqual({
    name: 'waermepumpe-2',
    title: 'Wärmepumpe 2',
  });
});

test('whatever an appliance is called, its name is valid and free, and its title is valid', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 2000 }),
      fc.integer({ min: 0, max: 30 }),
      (clientName, count) => {
        const taken = new Set<string>();
        for (let number = 0; number <= count; number++) {
          const { name, title } = deriveNamed(clientName, 'appliance', (candidate) => taken.has(candidate));
          expect(checkTitle('appliance', title)).toBe(title);
          expect(checkName('appliance', name)).toBe(name);
          expect(taken.has(name)).toBe(false);
          taken.add(name);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('an appliance may be called what stands on its cabinet, in one line of at most 64 characters', () => {
  expect(checkTitle('appliance', ' Wärmepumpe Keller ')).toBe('Wärmepumpe Keller');
  expect(checkTitle('appliance', '洗濯機 №2')).toBe('洗濯機 №2');
  for (const typed of ['', '   ', 'a\nb', 'a\u202eb', 'x'.repeat(65)]) {
    expect(() => checkTitle('appliance', typed)).toThrow(expect.objectContaining({ code: 'name_invalid' }));
  }
});

test('a person finds an appliance by its name, its title or almost that, and none if several have the title', () => {
  const wallbox = { name: 'wallbox-garage', title: 'Wallbox Garage' };
  const washer = { name: 'appliance', title: '洗濯機' };
  const both = [
    { name: 'heater-2', title: 'Heater' },
    { name: 'heater-3', title: 'Heater' },
  ];
  const find = (typed: string) => findNamed([wallbox, washer, ...both], typed);
  for (const typed of ['wallbox-garage', 'Wallbox Garage', ' wallbox garage']) expect(find(typed)).toBe(wallbox);
  expect(find('洗濯機')).toBe(washer);
  expect(find('heater-3')).toBe(both[1]);
  for (const typed of ['Heater', 'wallbox', '', '冷蔵庫']) expect(find(typed)).toBeUndefined();
  const get = (typed: string) => () => getNamed('appliance', both, typed);
  expect(get('Heater')).toThrow(
    /^several appliances are called Heater: use the name of one of them \(heater-2, heater-3\)$/,
  );
  expect(get('Oven')).toThrow(/^there is no appliance Oven: /);
});
