import { format, inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Failure, messageOf } from '../../src/core/failure.ts';
import { Secret } from '../../src/core/secret.ts';
import { sampleGrant } from './samples.ts';

const secret = new Secret('hunter2-hunter2');

test.each<[string, (value: unknown) => string]>([
  ['String()', String],
  ['a template string', (value) => `${value}`],
  ['joining', (value) => ['', value].join('')],
  ['JSON', (value) => JSON.stringify({ value })],
  ['JSON with indentation', (value) => JSON.stringify([value], null, 2)],
  ['util.inspect', (value) => inspect({ value })],
  ['util.inspect with all options', (value) => inspect(value, { showHidden: true, depth: 9, customInspect: false })],
  ['util.format', (value) => format('%s %o %O %j', value, value, value, value)],
  ['an error message', (value) => String(new Error(`it was ${value}`))],
  ['an error with it as a member', (value) => inspect(Object.assign(new Error('it failed'), { value }))],
  ['the cause of an error', (value) => inspect(new Failure('unexpected', 'it failed', { cause: value }))],
  ['the message of a failure and its cause', (value) => messageOf(new Error('it failed', { cause: value }))],
  ['its entries', (value) => JSON.stringify([Object.entries(value as object), { ...(value as object) }])],
  ['a copy of it', (value) => inspect(structuredClone(value))],
])('a secret does not appear in %s', (_, show) => {
  expect(show(secret)).not.toContain('hunter2');
  expect(show(secret).length).toBeGreaterThan(0);
});

test('[secret] stands for a secret wherever it is shown', () => {
  expect([`${secret}`, JSON.stringify([secret]), inspect(secret)]).toEqual(['[secret]', '["[secret]"]', '[secret]']);
});

test('a secret nested in other objects does not appear in their output', () => {
  expect(inspect({ held: [sampleGrant()] }, { depth: 9 })).not.toMatch(/the-(access|refresh)-token/);
  expect(JSON.stringify(new Map([['held', sampleGrant()]]).get('held'))).not.toMatch(/the-(access|refresh)-token/);
});

test('a secret gives its value only through reveal()', () => {
  expect(secret.reveal()).toBe('hunter2-hunter2');
});

test('tests take two secrets for equal only if they have the same value', () => {
  expect({ secret: new Secret('a') }).toEqual({ secret: new Secret('a') });
  expect({ secret: new Secret('a') }).not.toEqual({ secret: new Secret('b') });
  expect({ secret: new Secret('a') }).not.toMatchObject({ secret: new Secret('b') });
});

test('the message of a failure contains the messages of its causes', () => {
  const cause = new Error('disk full', { cause: 'no space' });
  expect(messageOf(new Failure('store_unwritable', 'it was not written', { cause }))).toBe(
    'it was not written: disk full: no space',
  );
  expect(messageOf('plain')).toBe('plain');
  expect(messageOf(new TypeError())).toBe('TypeError');
});

test('the message of an aggregate error contains each of its errors', () => {
  const both = new AggregateError([
    new Error('connect ECONNREFUSED ::1:80'),
    new Error('connect EHOSTUNREACH 10.0.0.1'),
  ]);
  expect(messageOf(both)).toBe('connect ECONNREFUSED ::1:80, connect EHOSTUNREACH 10.0.0.1');
});
