import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { findCloud } from '../../src/clouds/catalogue.ts';
import { ODD_ANSWERS, type ReadAnswer } from '../../src/clouds/odd-answers.ts';
import type { PortalResponse } from '../../src/portal/http.ts';
import {
  type ResponseRules,
  readTokenEndpointResponse,
  toPollOutcome,
  toTokenOutcome,
} from '../../src/portal/responses.ts';

const TOKENS = { access_token: 'aaa', refresh_token: 'rrr', expires_in: 600, token_type: 'bearer' };

function responseOf(status: number, body: unknown): PortalResponse {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, body: text, retryAfter: null, portalTime: null };
}

const RULES: ResponseRules = {
  scopeSeparator: ' ',
  tokenLifetime: 3_600_000,
  errorCodes: {},
  readsErrorsOfSuccess: true,
  protocol: {},
  readAnswer: null,
};

function refreshOutcome(status: number, body: unknown, rules: Partial<ResponseRules> = {}) {
  return toTokenOutcome(readTokenEndpointResponse(responseOf(status, body), 'refresh', { ...RULES, ...rules }));
}

function pollOutcome(status: number, body: unknown, rules: Partial<ResponseRules> = {}) {
  return toPollOutcome(readTokenEndpointResponse(responseOf(status, body), 'device_token', { ...RULES, ...rules }));
}

test('each cloud with odd answers has a case in this file', () => {
  const source = readFileSync(import.meta.filename, 'utf8');
  expect(Object.keys(ODD_ANSWERS).filter((name) => !source.includes(`rulesOf('${name}')`))).toEqual([]);
});

/** The rules of a cloud with odd answers. */
function rulesOf(name: string): Partial<ResponseRules> {
  const { protocol = {}, settings } = findCloud(name) ?? expect.fail(`there is no preset ${name}`);
  const { scope_separator: scopeSeparator = ' ' } = settings;
  return { protocol, scopeSeparator, readAnswer: ODD_ANSWERS[name] ?? expect.fail(`${name} has no odd answer`) };
}

describe('a token response', () => {
  test.each<[string, object, object]>([
    ['as in RFC 6749', TOKENS, { lifetime: 600_000, scope: null }],
    ['without a token_type', { ...TOKENS, token_type: undefined }, { lifetime: 600_000 }],
    ['with another token_type', { ...TOKENS, token_type: 'mac' }, { lifetime: 600_000 }],
    ['with expires_in as a string', { ...TOKENS, expires_in: '1800' }, { lifetime: 1_800_000 }],
    ['without expires_in', { ...TOKENS, expires_in: undefined }, { lifetime: 3_600_000 }],
    ['without a refresh token', { ...TOKENS, refresh_token: undefined }, { refreshToken: null }],
    ['with a list as its scope', { ...TOKENS, scope: ['a', 'b'] }, { scope: 'a b' }],
    ['with an error beside the tokens', { ...TOKENS, error: '' }, { lifetime: 600_000 }],
  ])('%s is used', (_, body, tokens) => {
    expect(refreshOutcome(200, body)).toMatchObject({ kind: 'granted', tokens });
  });

  test('separates the names of its scope as requests do', () => {
    const body = { ...TOKENS, scope: 'a,b' };
    expect(refreshOutcome(200, body, { scopeSeparator: ',' })).toMatchObject({
      tokens: { scope: 'a b' },
    });
    expect(refreshOutcome(200, body)).toMatchObject({ tokens: { scope: 'a,b' } });
  });

  test('a token response below a member is used if the preset says so', () => {
    const body = { status: 0, body: { ...TOKENS, scope: 'user.info,user.metrics', userid: 1 } };
    expect(refreshOutcome(200, body, rulesOf('withings'))).toMatchObject({
      kind: 'granted',
      tokens: { scope: 'user.info user.metrics', account: '1' },
    });
  });
});

describe('an error response to a refresh', () => {
  test.each<[number, unknown, string]>([
    [401, { error: 'invalid_grant' }, 'refused'],
    [200, { error: 'invalid_grant' }, 'refused'],
    [400, { error: 'invalid_client' }, 'misconfigured'],
    [401, { error: 'unauthorized_client' }, 'misconfigured'],
    [401, { errors: [{ errorType: 'invalid_token', message: 'expired' }] }, 'rejected'],
    [400, { error: { code: 'login_required' } }, 'rejected'],
    [403, { error: 'access_denied' }, 'rejected'],
    [403, '<html>', 'blocked'],
    [401, '', 'blocked'],
    [302, { error: 'invalid_grant' }, 'blocked'],
    [403, { message: 'Forbidden' }, 'blocked'],
    [403, { status: 403, error: 'Forbidden', path: '/token' }, 'blocked'],
    [404, { error: 'NOT_FOUND' }, 'blocked'],
    [400, { error: { code: 400 } }, 'blocked'],
    [200, { error: 'something' }, 'rejected'],
    [200, '<html>', 'ambiguous'],
    [204, '', 'ambiguous'],
    [500, { fault: {} }, 'ambiguous'],
    [429, '', 'deferred'],
    [400, { error: 'temporarily_unavailable' }, 'deferred'],
  ])('HTTP %d with %j means: %s', (status, body, kind) => {
    expect(refreshOutcome(status, body)).toMatchObject({ kind });
  });

  test('an error inside of HTTP 200 is known by its status member', () => {
    const rules = rulesOf('withings');
    expect(refreshOutcome(200, { status: 601, body: {} }, rules)).toMatchObject({ kind: 'deferred' });
    expect(refreshOutcome(200, { status: 503, body: {}, error: 'x' }, rules)).toMatchObject({
      kind: 'rejected',
      detail: 'HTTP 200 status 503',
    });
    expect(refreshOutcome(401, { status: 100 }, rules)).toMatchObject({ kind: 'rejected' });
    expect(refreshOutcome(403, { message: 'Forbidden' }, rules)).toMatchObject({ kind: 'blocked' });
  });
});

test('the 200 of a portal whose errors have their own status is never an error, whatever it contains', () => {
  const rules = { readsErrorsOfSuccess: false };
  for (const body of [{ error: 'invalid_grant' }, { error: 'something' }, {}, '<html>'])
    expect(refreshOutcome(200, body, rules)).toEqual({
      kind: 'ambiguous',
      detail: expect.stringMatching(/^HTTP 200 /),
    });
});

describe('a response to the poll of a device code', () => {
  test.each<[number, unknown, string]>([
    [400, { error: 'authorization_pending' }, 'not_yet'],
    [403, { error: 'authorization_pending' }, 'not_yet'],
    [400, { error: 'slow_down' }, 'slow_down'],
    [429, { error: 'slow_down' }, 'slow_down'],
    [400, { error: 'access_denied' }, 'denied'],
    [400, { error: 'expired_token' }, 'ended'],
    [400, { error: 'invalid_grant' }, 'ended'],
    [401, { error: 'invalid_client' }, 'misconfigured'],
    [500, '<html>', 'unreachable'],
    [400, '', 'unreachable'],
    [200, TOKENS, 'granted'],
  ])('HTTP %d with %j means: %s', (status, body, kind) => {
    expect(pollOutcome(status, body)).toMatchObject({ kind });
  });

  test('an error of BMW during a login is waited for, and after a refresh it is a lost answer', () => {
    const device = readTokenEndpointResponse(responseOf(500, '{}'), 'device_token', { ...RULES, ...rulesOf('bmw') });
    expect(device).toMatchObject({ meaning: 'deferred' });
    expect(refreshOutcome(500, '{}', rulesOf('bmw'))).toMatchObject({ kind: 'ambiguous' });
  });

  test("a response to a poll is read with the cloud's own errors", () => {
    const readAnswer: ReadAnswer = ({ operation, status }) =>
      operation === 'device_token' && status === 403 ? { meaning: 'not_yet' } : null;
    expect(pollOutcome(403, '<html>', { readAnswer })).toMatchObject({ kind: 'not_yet' });
    expect(refreshOutcome(403, '<html>', { readAnswer })).toMatchObject({ kind: 'blocked' });
  });
});

describe('an error code that the configuration maps to one of the standard', () => {
  const errorCodes = {
    invalid_token: 'invalid_grant',
    wrong_app: 'invalid_client',
    malformed: 'invalid_request',
    unauthorized: 'invalid_grant',
  };
  test.each<[number, unknown, object]>([
    [401, { error: 'invalid_token' }, { kind: 'refused', detail: 'HTTP 401 invalid_token' }],
    [401, { errors: [{ errorType: 'invalid_token' }] }, { kind: 'refused' }],
    [500, { error: { code: 'invalid_token' } }, { kind: 'refused' }],
    [200, { error: 'wrong_app' }, { kind: 'misconfigured', detail: 'HTTP 200 wrong_app' }],
    [400, { error: 'malformed' }, { kind: 'rejected', error: 'invalid_request', detail: 'HTTP 400 malformed' }],
    [400, { error: 'toString' }, { kind: 'rejected', error: 'toString' }],
    // Otherwise the name of the status is no code.
    [401, { error: 'unauthorized' }, { kind: 'refused', detail: 'HTTP 401 unauthorized' }],
  ])('HTTP %d with %j is read like that, and shown as it is', (status, body, outcome) => {
    expect(refreshOutcome(status, body, { errorCodes })).toMatchObject(outcome);
  });
});

test.each([
  ['The scope home.control is unknown', ' (The scope home.control is unknown)'],
  ['Invalid refresh token: 8xLOxBtZp8', ' (Invalid refresh token: …)'],
  ['Token 0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90 expired', ' (Token … expired)'],
  ['AADSTS700082: The refresh token has expired', ' (AADSTS700082: The refresh token has expired)'],
  ['bad'.repeat(99), ' (…)'],
  ['a line\u2028break', ''],
  [7, ''],
  [{ text: 'expired' }, ''],
])('the description %j of a rejection is shown without what may be a token', (error_description, shown) => {
  const outcome = refreshOutcome(400, { error: 'invalid_scope', error_description });
  expect(outcome).toMatchObject({ kind: 'rejected', detail: `HTTP 400 invalid_scope${shown}` });
});

test.each(['constructor', 'toString', '__proto__'])('the error code %s is unknown, like any other', (error) => {
  expect(refreshOutcome(400, `{"error":"${error}"}`)).toMatchObject({
    kind: error.startsWith('_') ? 'blocked' : 'rejected',
  });
});

test('who names a time is waited for, and a known code of the portal itself counts more', () => {
  const outcome = (body: string) =>
    toTokenOutcome(
      readTokenEndpointResponse(
        { status: 403, body, retryAfter: 7000, portalTime: null },
        ...(['refresh', RULES] as const),
      ),
    );
  expect(outcome('<html>')).toMatchObject({ kind: 'deferred', retryAfter: 7000 });
  expect(outcome('{"error":"rate_limited"}')).toMatchObject({ kind: 'deferred', retryAfter: 7000 });
  expect(outcome('{"error":"invalid_grant"}')).toMatchObject({ kind: 'refused' });
});

test('a 503 without a word after a long wait is that of a gateway: the portal may have acted', () => {
  const response = responseOf(503, '');
  const kinds = [
    { ...response, waited: 4999 },
    { ...response, waited: 5000 },
    { ...response, waited: 30_000, retryAfter: 1000 },
    { ...response, waited: 30_000, body: '{"error":"temporarily_unavailable"}' },
    { ...response, waited: 30_000, status: 429 },
  ].map((one) => toTokenOutcome(readTokenEndpointResponse(one, 'refresh', RULES)).kind);
  expect(kinds).toEqual(['deferred', 'ambiguous', 'deferred', 'deferred', 'deferred']);
});

test.each([
  ['invalid_request', 'HTTP 400 invalid_request'],
  ['temporarily unavailable', 'HTTP 400 temporarily unavailable'],
  ['Zx8vQ0aXb1c2d3e4f5g6h7j8k9', 'HTTP 400'],
  ['no such token: Zx8vQ0aXb1c2d3e4f5g6h7j8k9', 'HTTP 400'],
  ['two\nlines', 'HTTP 400'],
  ['x'.repeat(1000), 'HTTP 400'],
])('the error %.40j is named only if it can be an error code, so an echoed token stays out of it', (error, detail) => {
  expect(refreshOutcome(400, { error })).toMatchObject({ detail });
});
