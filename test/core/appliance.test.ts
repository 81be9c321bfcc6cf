import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkClientId } from '../../src/core/appliances/appliance.ts';
import { checkScope, missingScope, sameScope } from '../../src/core/connections/scope.ts';
import { checkName } from '../../src/core/name.ts';

test.each(['a', '7', 'wallbox', 'heat-pump-2', 'a-', '0-0', 'x'.repeat(63)])('%s is a valid appliance name', (name) => {
  expect(checkName('appliance', name)).toBe(name);
});

test.each(['', '-a', 'A', 'wall box', 'wallbox\n', 'wärme', 'a_b', 'a.b', '../a', 'x'.repeat(64)])(
  '%j is not a valid appliance name, and the message lists the allowed characters',
  (name) => {
    expect(() => checkName('appliance', name)).toThrow(
      expect.objectContaining({ code: 'name_invalid', message: expect.stringContaining('use 1 to 63 of a-z, 0-9') }),
    );
  },
);

test('the error about an invalid appliance name quotes at most 300 characters', () => {
  expect(() => checkName('appliance', '!'.repeat(100_000))).toThrow(/^.{0,300}$/);
});

test.each([
  ['Monitoring RemoteControl', 'Monitoring RemoteControl'],
  ['  Monitoring \t RemoteControl\n', 'Monitoring RemoteControl'],
  ['Monitoring Monitoring', 'Monitoring'],
  ['urn:x:y#z!', 'urn:x:y#z!'],
  ['', null],
  ['   ', null],
  [null, null],
  [undefined, null],
])('the scope %j is normalized to %j', (input, expected) => {
  expect(checkScope(input)).toBe(expected);
});

test.each(['"Monitoring"', 'a\\b', 'Überwachung', 'a\u0000', 'a\u007f'])('the scope %j is refused', (scope) => {
  expect(() => checkScope(scope)).toThrow(expect.objectContaining({ code: 'scope_invalid' }));
});

test('two scopes with the same names are equal in any order and with repetitions, and differ by any other name', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[A-Za-z:]{1,8}$/), { maxLength: 6 });
  fc.assert(
    fc.property(names, (all) => {
      const shuffled = [...all, ...all].reverse().join('  ');
      expect(sameScope(all.join(' '), shuffled)).toBe(true);
      expect(sameScope(all.join(' '), `${shuffled} Another!`)).toBe(false);
    }),
  );
  expect(sameScope(null, '')).toBe(true);
  expect(sameScope(null, 'Monitoring')).toBe(false);
  expect(sameScope('monitoring', 'Monitoring')).toBe(false);
});

test.each<[string | null, string | null, readonly string[]]>([
  ['A B', 'A', ['B']],
  ['A B C', 'C D', ['A', 'B']],
  ['A B', 'B A', []],
  ['A B', null, []],
  [null, 'A', []],
  // The portal names its permissions otherwise in responses.
  ['READ WRITE', 'api.read api.write', []],
  // Not named by many portals, and no permission of an appliance.
  ['openid offline_access A', 'A', []],
  ['openid offline_access A', 'openid offline_access', ['A']],
])('of the requested scope %j, the granted scope %j lacks %j', (requested, granted, missing) => {
  expect(missingScope(requested, granted)).toEqual(missing);
});

test('a scope has at most 1000 characters', () => {
  expect(checkScope('a'.repeat(1000))).toHaveLength(1000);
  expect(() => checkScope('a'.repeat(1001))).toThrow(/1001 characters/);
});

test.each(['wallbox', '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90', 'A.b_c~d-e', 'x'.repeat(100)])(
  '%s is a valid client_id',
  (clientId) => {
    expect(checkClientId(clientId)).toBe(clientId);
  },
);

test.each(['', 'a b', 'a:b', 'a/b', 'ä', 'a\n', '"', 'x'.repeat(101)])('%j is not a valid client_id', (clientId) => {
  expect(() => checkClientId(clientId)).toThrow(
    expect.objectContaining({ code: 'name_invalid', message: expect.stringMatching(/^.{1,200}use 1 to 100 of/) }),
  );
});
