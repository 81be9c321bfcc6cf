import { DatabaseError } from 'pg';
import { describe, expect, test } from 'vitest';
import { isConflict, isOutage, isServerError, startFailure } from '../../../src/store/postgres/database/errors.ts';

/** An error of a server. @param severity as the server translates it */
function errorOf(code: string, severity = 'ERROR', message = 'the message'): DatabaseError {
  return Object.assign(new DatabaseError(message, message.length, 'error'), { code, severity });
}

describe('what an error says about the transaction', () => {
  test.each([
    ['a duplicate', '23505', 'ERROR', true],
    ['a full disk', '53100', 'ERROR', true],
    ['the end of a session', '57P01', 'FATAL', false],
    // Servers translate the severity.
    ['the end of a session, in Russian', '57P01', 'ВАЖНО', false],
    ['a panic', 'XX000', 'PANIC', false],
  ])('after %s it is known that nothing was committed: %s, %s, %s', (_, code, severity, isKnown) => {
    expect(isServerError(errorOf(code, severity))).toBe(isKnown);
  });

  test('after an error of the connection nothing is known', () => {
    expect(isServerError(new Error('Connection terminated unexpectedly'))).toBe(false);
    expect(isServerError(new Error('Query read timeout'))).toBe(false);
  });
});

test.each(['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED'])('a hub waits if its clock may be wrong: %s', (code) => {
  expect(startFailure(Object.assign(new Error('certificate is not yet valid'), { code }), 'database x')).toMatchObject({
    code: 'database_unavailable',
    message: expect.stringContaining('check the clock'),
  });
});

describe('whether a database is away', () => {
  test.each([
    ['57P01', 'FATAL', true],
    ['53300', 'FATAL', true],
    ['53100', 'ERROR', true],
    ['25006', 'ERROR', true],
    ['28P01', 'FATAL', false],
    ['57014', 'ERROR', false],
    ['23505', 'ERROR', false],
  ])('an error %s (%s) of the server says that: %s', (code, severity, isAway) => {
    expect(isOutage(errorOf(code, severity))).toBe(isAway);
  });

  test.each(['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH'])(
    'an error %s of the connection says so',
    (code) => {
      expect(isOutage(Object.assign(new Error('connect'), { code }))).toBe(true);
    },
  );
});

test.each([
  ['40001', true],
  ['23503', true],
  ['23505', false],
])('a transaction that failed with %s is repeated: %s', (code, isRepeated) => {
  expect(isConflict(errorOf(code))).toBe(isRepeated);
});

describe('why a hub can not start', () => {
  test.each([
    [errorOf('57P03', 'FATAL', 'the database system is starting up'), 'database_unavailable', 'starting up'],
    [errorOf('57014', 'ERROR', 'canceling statement'), 'database_unavailable', 'canceling'],
    [errorOf('42P01', 'ERROR', 'relation "grants" does not exist'), 'database_unusable', 'relation'],
    [errorOf('08P01', 'FATAL', 'unsupported startup parameter: options'), 'database_unusable', 'PgBouncer'],
    [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'database_unavailable', 'home on db'],
    [new Error('Query read timeout'), 'database_unavailable', 'home on db'],
  ])('%s', (error, code, says) => {
    const failure = startFailure(error, 'database home on db');
    expect(failure).toMatchObject({ code, message: expect.stringContaining(says), cause: error });
  });
});
