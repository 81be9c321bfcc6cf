import { describe, expect, test } from 'vitest';
import type { TokenOutcome } from '../../src/core/outcome.ts';
import { classify } from '../../src/portal/outcome.ts';

const bodies = {
  empty: '',
  'an HTML page': '<!doctype html><title>Sorry</title>',
  'broken JSON': '{"access_token": "abc", "refresh_to',
  'JSON that says nothing': '{}',
  invalid_grant: '{"error":"invalid_grant","error_description":"expired"}',
  invalid_client: '{"error":"invalid_client"}',
  unauthorized_client: '{"error":"unauthorized_client"}',
  'another OAuth error': '{"error":"invalid_request"}',
  'a token response':
    '{"access_token":"aaaaaa","refresh_token":"rrrrrr","expires_in":3600,"token_type":"bearer","scope":null}',
} as const;

/** The table of outcomes in DESIGN.md, "Refresh". */
function expected(status: number, body: keyof typeof bodies): TokenOutcome['kind'] {
  if (status >= 200 && status < 300) return body === 'a token response' ? 'granted' : 'ambiguous';
  if (status === 429 || status === 503) return 'deferred';
  if (status < 200 || status >= 500) return 'ambiguous';
  if (status >= 400 && body === 'invalid_grant') return 'refused';
  if (status >= 400 && (body === 'invalid_client' || body === 'unauthorized_client')) return 'misconfigured';
  return 'rejected';
}

describe.each(Object.keys(bodies) as (keyof typeof bodies)[])('with %s for a body', (body) => {
  test('every status from 100 to 599 has its outcome', () => {
    for (let status = 100; status < 600; status += 1) {
      const outcome = classify({ status, body: bodies[body], retryAfter: 7000, portalTime: 42 });
      expect(`${status} ${outcome.kind}`).toBe(`${status} ${expected(status, body)}`);
      if ('detail' in outcome) expect(outcome.detail).toContain(`HTTP ${status}`);
      if ('portalTime' in outcome) expect(outcome.portalTime).toBe(42);
      if (outcome.kind === 'deferred') expect(outcome.retryAfter).toBe(7000);
    }
  });
});

test('a refusal counts whatever else its answer holds', () => {
  const body = '{"error":"invalid_grant","error_description":{"text":"expired"},"error_uri":7,"status":400}';
  expect(classify({ status: 400, body, retryAfter: null, portalTime: null })).toMatchObject({ kind: 'refused' });
});

test('an error is named in the detail only where it can be a name: an echoed token stays out of it', () => {
  const detail = (error: string) => {
    const outcome = classify({ status: 400, body: JSON.stringify({ error }), retryAfter: null, portalTime: null });
    return 'detail' in outcome ? outcome.detail : '';
  };
  expect(detail('invalid_request')).toBe('HTTP 400 invalid_request');
  expect(detail('temporarily unavailable')).toBe('HTTP 400 temporarily unavailable');
  expect(detail('Zx8vQ0aXb1c2d3e4f5g6h7j8k9')).toBe('HTTP 400');
  expect(detail('no such token: Zx8vQ0aXb1c2d3e4f5g6h7j8k9')).toBe('HTTP 400');
  expect(detail('two\nlines')).toBe('HTTP 400');
  expect(detail('x'.repeat(1000))).toBe('HTTP 400');
});
