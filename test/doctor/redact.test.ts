import { createHash, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { redactSecrets } from '../../src/doctor/bundle/redact.ts';

const nothing: ReadonlySet<string> = new Set();
const scrubbed = (text: string, known: string[] = []) => redactSecrets(text, known, nothing);

it('the archive of the doctor contains no random bytes in any encoding', () => {
  for (let round = 0; round < 1000; round++) {
    const bytes = createHash('shake256', { outputLength: 16 + (round % 48) })
      .update(String(round))
      .digest();
    for (const form of ['base64', 'base64url', 'hex'] as const) {
      // A slash splits a base64 text, and the remaining parts reveal little.
      const secret = bytes.toString(form).replaceAll('/', '+');
      expect(scrubbed(`a line with ${secret} in it`)).toBe('a line with [removed] in it');
      expect(scrubbed(`{"what":"${secret}"}`)).toBe('{"what":"[removed]"}');
    }
  }
});

it.each([
  ['client_secret=hunter2&x=1', 'client_secret=[removed]&x=1'],
  ['"refresh_token": "short"', '"refresh_token": "[removed]"'],
  ['Authorization: Basic bWU6aHVudGVyMg==', 'Authorization: Basic [removed]'],
  ['Cookie: a=b; c=d', 'Cookie: [removed]'],
  ['https://u:p@host/x', 'https://[removed]@host/x'],
  ['see https://host/x?code=1&state=2 there', 'see https://host/x?[removed] there'],
  ['GET /callback/abc?code=1 HTTP/1.1', 'GET /callback/[removed]?[removed] HTTP/1.1'],
  ['type WDJB-MJHT now', 'type [removed] now'],
  ['the code BCDF-GHJK-LMNP-QRST', 'the code [removed]'],
  ['eyJhbGciOiJub25l.e30.', '[removed]'],
  ['without a digit: RuelxibihsscUU+kZPWT+PRmnjw=', 'without a digit: [removed]'],
  ['-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----', '[removed]'],
  ['of a hook: --token=x1', 'of a hook: [removed]', ['--token=x1']],
  ['in base64 LS10b2tlbj14MQ==', 'in base64 [removed]', ['--token=x1']],
])('the archive of the doctor removes the secret part of %j', (text, redacted, known: string[] = []) => {
  expect(scrubbed(text, known)).toBe(redacted);
});

it('the archive of the doctor keeps what people need to see', () => {
  const fingerprint = randomBytes(32).toString('base64url');
  const text = `{"id":"latchkey-5f0c9a1e","pin":"${fingerprint}","since":"2026-11-22T07:40:00Z"}
NetworkManager-dispatcher.service: Deactivated successfully.
latchkey_refreshes_total{outcome="portal_unreachable"} 3
100600  0:0  4096  2026-11-22T07:40:00.123Z  latchkey.db.damaged-2026-11-22T07-35-23-123Z
eth0  fd00:0:0:0:fc:ff:fe00:1/64  02:fc:00:00:00:01
/var/lib/latchkey/upgrades/0.1.0.db is open to other users (mode 0644): sudo chmod go= /var/lib/latchkey/store.key
portals.home.base_url https://api.portal.example is out of reach (connect ECONNREFUSED 127.0.0.1:8490)`;
  expect(redactSecrets(text, [], new Set([fingerprint]))).toBe(text);
});

/** Processor time of this process, in µs. */
function cpuTimeOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The cost of one long text relative to eight texts of an eighth of its length: the median of several tries. */
function growth(text: string): number {
  const short = text.repeat(Math.ceil(4000 / text.length));
  const long = short.repeat(8);
  scrubbed(long);
  const ratios = Array.from({ length: 7 }, () => {
    const eight = cpuTimeOf(() => {
      for (let count = 0; count < 8; count++) scrubbed(short);
    });
    return cpuTimeOf(() => scrubbed(long)) / Math.max(1, eight);
  });
  return ratios.sort((a, b) => a - b)[3] ?? 0;
}

const FILL = [
  ...['/', '/a', 'https://', '://a', 'a@', '?', '#a', '/callback/', 'a.', '.', '-', '=', '%', ' ', '\n', "'"],
  ...['cookie', 'cookie: ', 'client_secret ', 'password=', 'Bearer ', 'BBBB-', '2031-04-05T', 'a1B'],
  ...['-----BEGIN ', '-----BEGIN PRIVATE KEY', '-----BEGIN PRIVATE KEY-----', 'eyJaaaaaaaa', 'eyJaaaaaaaa-', 'eyJ'],
];

it.each(FILL)('the redaction of a journal takes linear time for text full of %j', (text) => {
  // The compiler and the garbage collector run in their own threads, and count: one of several tries is without them.
  let least = growth(text);
  for (let attempt = 1; least >= 2 && attempt < 5; attempt++) least = Math.min(least, growth(text));
  expect(least).toBeLessThan(2);
});

it('the archive of the doctor removes the query of a path of any length', () => {
  for (const path of [`https://host/${'a'.repeat(5000)}`, `/${'a/'.repeat(2500)}`])
    expect(scrubbed(`see ${path}?code=1 there`)).toBe(`see ${path}?[removed] there`);
});
