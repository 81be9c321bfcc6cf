import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createSecretSearch } from './secret-search.ts';

const secret = 'Zq3/x+9~vT5kLw8_rB2nD7cF';
const search = createSecretSearch([secret]);

describe('forms in which a secret is found', () => {
  test.each([
    ['as it is', `token=${secret}.`],
    ['within a longer word', `x${secret}x`],
    ['by its first 16 characters', `"token": "${secret.slice(0, 16)}…"`],
    ['URL-encoded', `GET /?code=${encodeURIComponent(secret)}`],
    ['URL-encoded in lower case', encodeURIComponent(secret).replaceAll(/%../g, (byte) => byte.toLowerCase())],
    ['in a form', new URLSearchParams({ code: secret }).toString()],
    ['in JSON that escapes slashes', JSON.stringify({ secret }).replaceAll('/', '\\/')],
    ['in base64', Buffer.from(secret).toString('base64')],
    ['in base64url', Buffer.from(secret).toString('base64url')],
    ...['a', 'ab', 'abc', 'abcd:'].map((before) => [
      `in base64 after ${before}`,
      Buffer.from(`${before}${secret}:etc`).toString('base64'),
    ]),
  ])('the search finds a secret %s', (_form, text) => {
    const leaks = search(Buffer.from(`one\ntwo\n${text}\n`));
    expect(leaks.map(({ line }) => line)).toContain(3);
    expect(JSON.stringify(leaks)).not.toContain(secret.slice(0, 8));
  });

  test('the search finds a short secret as a separate word', () => {
    expect(createSecretSearch(['482913'])(Buffer.from('code 482913'))).toHaveLength(1);
  });

  test('the search finds a JWT by its signature', () => {
    const signature = randomBytes(32).toString('base64url');
    const find = createSecretSearch([`eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.${signature}`]);
    expect(find(Buffer.from(`… ${signature.slice(0, 20)}`))).toHaveLength(1);
    expect(find(Buffer.from('eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.'))).toEqual([]);
  });

  test('the search finds a private key by any of its lines', () => {
    const lines = [randomBytes(48), randomBytes(48), randomBytes(30)].map((line) => line.toString('base64'));
    const find = createSecretSearch([
      ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n'),
    ]);
    for (const line of lines) expect(find(Buffer.from(line))).toHaveLength(1);
    expect(find(Buffer.from('-----BEGIN PRIVATE KEY-----'))).toEqual([]);
  });
});

describe('texts without a secret', () => {
  test.each([
    ['in an empty log', ''],
    ['in a log without secrets', 'refreshed the grant of wallbox\n'],
    ['if the text has fewer than 16 characters of it', secret.slice(0, 15)],
  ])('the search finds no secret %s', (_what, text) => {
    expect(search(Buffer.from(text))).toEqual([]);
  });

  test('the search does not find a short secret within a longer number', () => {
    expect(createSecretSearch(['482913'])(Buffer.from('time 1748291355'))).toEqual([]);
  });
});

test('the search for ten thousand secrets takes no longer than twice the search for ten', () => {
  const secrets = Array.from({ length: 10_000 }, () => `lk_${randomBytes(32).toString('base64url')}`);
  const log = Buffer.from(`lk_${randomBytes(24).toString('base64url')} {"level":30,"msg":"ok"}\n`.repeat(100_000));
  const [few, many] = [createSecretSearch(secrets.slice(0, 10)), createSecretSearch(secrets)];
  const timeOf = (find: typeof few) => {
    const { user } = process.cpuUsage();
    expect(find(log)).toEqual([]);
    return process.cpuUsage().user - user;
  };
  const ratios = Array.from({ length: 5 }, () => timeOf(many) / timeOf(few));
  expect(Math.min(...ratios)).toBeLessThan(2);
  log.write(secrets[77] ?? '', log.length - 100);
  expect(many(log)).toHaveLength(1);
});
