import { expect } from 'vitest';
import { type HubResponse, parseJsonBody } from './hub-client.ts';

/** Checks what RFC 6749, 5.2 requires of every error. @returns its members */
export function expectError(response: HubResponse, status: number, error: string): Record<string, unknown> {
  expect({ status: response.status, ...parseJsonBody(response) }).toMatchObject({ status, error });
  expectNoStore(response);
  expect(response.headers['content-type']).toMatch(/^application\/json/);
  expect(response.headers['www-authenticate'] !== undefined).toBe(status === 401);
  const body = parseJsonBody(response);
  expect(body['error_description']).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  expect(body).not.toHaveProperty('access_token');
  return body;
}

/** No cache may store it (RFC 6749, 5.1). */
export function expectNoStore(response: HubResponse): void {
  expect(response.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
}
