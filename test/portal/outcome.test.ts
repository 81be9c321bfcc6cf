import { expect, test } from 'vitest';
import { RULES } from '../../src/portal/helper/helper-portal.ts';
import type { PortalResponse } from '../../src/portal/http.ts';
import { readTokenEndpointResponse, toTokenOutcome } from '../../src/portal/responses.ts';

const classifyTokenResponse = (response: PortalResponse) =>
  toTokenOutcome(readTokenEndpointResponse(response, 'refresh', RULES));

test('an invalid_grant error is a refusal, whatever else the response contains', () => {
  const body = '{"error":"invalid_grant","error_description":{"text":"expired"},"error_uri":7,"status":400}';
  expect(classifyTokenResponse({ status: 400, body, retryAfter: null, portalTime: null })).toMatchObject({
    kind: 'refused',
  });
});

test('a 503 without a word after a long wait is that of a gateway: the portal may have acted', () => {
  const response = { status: 503, body: '', retryAfter: null, portalTime: null };
  const kinds = [
    { ...response, waited: 4999 },
    { ...response, waited: 5000 },
    { ...response, waited: 30_000, retryAfter: 1000 },
    { ...response, waited: 30_000, body: '{"error":"temporarily_unavailable"}' },
    { ...response, waited: 30_000, status: 429 },
  ].map((one) => classifyTokenResponse(one).kind);
  expect(kinds).toEqual(['deferred', 'ambiguous', 'deferred', 'deferred', 'deferred']);
});

test('the detail names the error only if it can be an error code, so an echoed token stays out of it', () => {
  const detail = (error: string) => {
    const outcome = classifyTokenResponse({
      status: 400,
      body: JSON.stringify({ error }),
      retryAfter: null,
      portalTime: null,
    });
    return 'detail' in outcome ? outcome.detail : '';
  };
  expect(detail('invalid_request')).toBe('HTTP 400 invalid_request');
  expect(detail('temporarily unavailable')).toBe('HTTP 400 temporarily unavailable');
  expect(detail('Zx8vQ0aXb1c2d3e4f5g6h7j8k9')).toBe('HTTP 400');
  expect(detail('no such token: Zx8vQ0aXb1c2d3e4f5g6h7j8k9')).toBe('HTTP 400');
  expect(detail('two\nlines')).toBe('HTTP 400');
  expect(detail('x'.repeat(1000))).toBe('HTTP 400');
});
