import { expect } from 'vitest';
import { type HubResponse, parseJsonBody } from './hub-client.ts';

/** What RFC 6749, 5.2 and DESIGN.md ask of every error. @returns its members */
export function expectError(answer: HubResponse, status: number, error: string): Record<string, unknown> {
  expect({ status: answer.status, ...parseJsonBody(answer) }).toMatchObject({ status, error });
  expectNoStore(answer);
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
  expect(answer.headers['www-authenticate'] !== undefined).toBe(status === 401);
  const body = parseJsonBody(answer);
  expect(body['error_description']).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  expect(body).not.toHaveProperty('access_token');
  return body;
}

/** Nobody on the way keeps it (RFC 6749, 5.1). */
export function expectNoStore(answer: HubResponse): void {
  expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
}
