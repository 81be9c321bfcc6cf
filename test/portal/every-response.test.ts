import { describe, expect, test } from 'vitest';
import type { TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import { HelperPortal, RULES } from '../../src/portal/helper/helper-portal.ts';
import { readTokenEndpointResponse, toTokenOutcome } from '../../src/portal/responses.ts';
import { selectRows } from '../support/long.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';

/** Bodies that a token endpoint, or a proxy before it, may send. */
const bodies = {
  empty: '',
  'an HTML page': '<!doctype html><title>Sorry</title>',
  'broken JSON': '{"access_token": "abc", "refresh_to',
  'JSON that says nothing': '{}',
  invalid_grant: '{"error":"invalid_grant","error_description":"expired"}',
  invalid_client: '{"error":"invalid_client"}',
  unauthorized_client: '{"error":"unauthorized_client"}',
  'another OAuth error': '{"error":"invalid_request"}',
  'a code in an object': '{"error":{"code":"invalid_token","message":"expired"}}',
  'a code in a list': '{"errors":[{"errorType":"invalid_token"}]}',
  'a token response': '{"access_token":"aaaaaa","refresh_token":"rrrrrr","expires_in":3600,"token_type":"bearer"}',
} as const;
type Body = keyof typeof bodies;
type Row = TokenOutcome['kind'];

/**
 * The outcomes by status: the outcome of most bodies, then the bodies with another outcome. Later lines win over earlier
 * ones.
 */
const table: readonly (readonly [from: number, to: number, row: Row, exceptions: Partial<Record<Body, Row>>])[] = [
  // The connection ends after the informational response: the request was sent, and no final response came.
  [100, 199, 'ambiguous', {}],
  [200, 299, 'ambiguous', { 'a token response': 'granted' }],
  // A 204 has no body, whatever bytes follow it (RFC 9110, 15.3.5).
  [204, 204, 'ambiguous', {}],
  [300, 399, 'blocked', {}],
  [
    400,
    499,
    'blocked',
    {
      invalid_grant: 'refused',
      invalid_client: 'misconfigured',
      unauthorized_client: 'misconfigured',
      'another OAuth error': 'rejected',
      'a code in an object': 'rejected',
      'a code in a list': 'rejected',
    },
  ],
  [429, 429, 'deferred', {}],
  [500, 599, 'ambiguous', {}],
  [503, 503, 'deferred', {}],
];

function rowOf(status: number, body: Body): Row {
  const line = table.findLast(([from, to]) => from <= status && status <= to);
  return line?.[3][body] ?? line?.[2] ?? expect.fail(`no line for ${status}`);
}

const STATUSES = Array.from({ length: 500 }, (_, index) => 100 + index);
/** The limits of each line, and the statuses between them that HTTP treats specially. */
const SAMPLE = [
  100, 101, 199, 200, 201, 204, 299, 300, 302, 304, 399, 400, 401, 428, 429, 430, 499, 500, 502, 503, 504, 599,
];

/** Whether responses with this status have no body (RFC 9112, 6.3). */
function hasNoBody(status: number): boolean {
  return status < 200 || status === 204 || status === 304;
}

/** The outcome of a refresh at this server. */
async function refreshAt(server: RawServer): Promise<TokenOutcome> {
  await using portal = new HelperPortal({
    baseUrl: server.origin,
    frontendUrl: server.origin,
    clientId: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01',
    clientSecret: new Secret('the-client-secret'),
    credentialLocation: { portal: 'home' },
    ca: [],
  });
  return portal.refresh(new Secret('the-refresh-token'));
}

describe.each(Object.keys(bodies) as Body[])('token response with %s', (body) => {
  test('the response is classified as the table says for every status from 100 to 599', () => {
    const rows = STATUSES.map((status) => {
      const text = hasNoBody(status) ? '' : bodies[body];
      const response = { status, body: text, retryAfter: null, portalTime: null };
      return `${status} ${toTokenOutcome(readTokenEndpointResponse(response, 'refresh', RULES)).kind}`;
    });
    expect(rows).toEqual(STATUSES.map((status) => `${status} ${rowOf(status, body)}`));
  });

  test('the response is classified the same way when it comes over the wire', async () => {
    const statuses = selectRows(STATUSES, SAMPLE);
    let answered = 0;
    await using server = await startRawServer((socket) => socket.end(httpResponse(answered, bodies[body])));
    const rows: string[] = [];
    for (const status of statuses) {
      answered = status;
      rows.push(`${status} ${(await refreshAt(server)).kind}`);
    }
    expect(rows).toEqual(statuses.map((status) => `${status} ${rowOf(status, body)}`));
    // Each request was sent once: the HTTP client must not repeat a request that the portal may have acted on.
    expect(server.requests).toHaveLength(statuses.length);
  });
});

test('the responses that are sent over the wire cover every row of the table', () => {
  const tried = SAMPLE.flatMap((status) => (Object.keys(bodies) as Body[]).map((body) => rowOf(status, body)));
  const rows = table.flatMap(([, , row, exceptions]) => [row, ...Object.values(exceptions)]);
  expect(new Set(tried)).toEqual(new Set(rows));
  for (const [from, to] of table) expect(SAMPLE).toEqual(expect.arrayContaining([from, to]));
});

describe('Retry-After over the wire', () => {
  const date = 'Mon, 05 May 2031 06:07:08 GMT';
  test.each<[string, string, number | null]>([
    ['seconds', '120', 120_000],
    ['zero seconds', '0', 0],
    ['too many digits', '1'.repeat(400), null],
    ['a date', 'Mon, 05 May 2031 06:09:08 GMT', 120_000],
    ['a date in the form of RFC 850', 'Monday, 05-May-31 06:09:08 GMT', 120_000],
    ['a date in the form of asctime', 'Mon May  5 06:09:08 2031', 120_000],
    ['a past date', 'Sun, 04 May 2031 06:07:08 GMT', 0],
    ['an invalid date', 'Mon, 99 Foo 2031 06:09:08 GMT', null],
    ['a negative number', '-120', null],
    ['words', 'in a while', null],
    ['a power of ten', '1e9', null],
    ['seconds with their unit', '5 minutes', null],
    ['nothing', '', null],
  ])('the hub parses a Retry-After header with %s', async (_, header, expected) => {
    for (const status of [429, 503]) {
      const headers = { date, 'retry-after': header };
      await using server = await startRawServer((socket) => socket.end(httpResponse(status, '', headers)));
      const portalTime = Date.parse(date);
      expect(await refreshAt(server)).toMatchObject({ kind: 'deferred', retryAfter: expected, portalTime });
    }
  });

  test('a Retry-After header that is repeated, or a date without a Date header, counts as absent', async () => {
    const twice = httpResponse(429, '', { date, 'retry-after': '5\r\nretry-after: 600' });
    await using first = await startRawServer((socket) => socket.end(twice));
    expect(await refreshAt(first)).toMatchObject({ kind: 'deferred', retryAfter: null });
    await using second = await startRawServer((socket) => socket.end(httpResponse(429, '', { 'retry-after': date })));
    expect(await refreshAt(second)).toMatchObject({ kind: 'deferred', retryAfter: null });
  });
});
