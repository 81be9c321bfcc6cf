import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { webhookHook } from '../../src/notify/webhook.ts';
import { FakeTime } from '../support/fake-time.ts';
import { rememberSecrets } from '../support/logs.ts';
import { waitFor } from '../support/wait-for.ts';

const SECRET = 'topic-5b1f09a7d3';
rememberSecrets([SECRET]);

const never = new AbortController().signal;

interface ReceivedRequest {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

const taken: ReceivedRequest[] = [];
let respond: (response: ServerResponse) => void = (response) => response.writeHead(204).end();
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => {
    body += String(chunk);
  });
  request.on('end', () => {
    const { method, url, headers } = request;
    taken.push({ method, url, headers, body });
    respond(response);
  });
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterEach(() => {
  taken.length = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function address(user = ''): string {
  return `http://${user}127.0.0.1:${(server.address() as AddressInfo).port}/hook/${SECRET}?a=b`;
}

function deliver(url = address(), timeout?: number) {
  return webhookHook(new Secret(url), null, new FakeTime(), timeout).deliver('{"status":"raised"}\n', never, 'msg-1');
}

describe('a webhook', () => {
  test('a webhook gets the notice as JSON', async () => {
    respond = (response) => response.writeHead(200).end('thank you');
    expect(await deliver()).toEqual({ ok: true, detail: 'responded with HTTP 200', retryable: false });
    expect(taken).toMatchObject([{ method: 'POST', url: `/hook/${SECRET}?a=b`, body: '{"status":"raised"}\n' }]);
    expect(taken[0]?.headers['content-type']).toBe('application/json');
    expect(taken[0]?.headers.authorization).toBeUndefined();
    expect(taken[0]?.headers).not.toHaveProperty('webhook-signature');
  });

  test('the user and the password in the address of a webhook are sent as HTTP Basic', async () => {
    await deliver(address('me:p%40ss@'));
    expect(taken[0]?.headers.authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  });

  test('a webhook with a secret gets messages with the signature of Standard Webhooks', async () => {
    const secret = new Secret(`whsec_${Buffer.alloc(32, 7).toString('base64')}`);
    const hook = webhookHook(new Secret(address()), secret, new FakeTime());
    await hook.deliver('{"status":"raised"}\n', never, 'msg-1');
    const { headers = {}, body = '' } = taken[0] ?? {};
    const sent = String(headers['webhook-timestamp']);
    expect(sent).toMatch(/^\d{10}$/);
    const hmac = createHmac('sha256', Buffer.alloc(32, 7)).update(`msg-1.${sent}.${body}`).digest('base64');
    expect(headers).toMatchObject({ 'webhook-id': 'msg-1', 'webhook-signature': `v1,${hmac}` });
  });

  test.each([
    [302, false, 'responded with HTTP 302, and redirects are not followed'],
    [404, false, 'responded with HTTP 404'],
    [429, true, 'responded with HTTP 429'],
    [500, true, 'responded with HTTP 500'],
  ])('a delivery to a webhook that answers %i can be retried: %s', async (status, retryable, detail) => {
    respond = (response) => response.writeHead(status, { location: address() }).end();
    expect(await deliver()).toEqual({ ok: false, detail, retryable });
    expect(taken).toHaveLength(1);
  });

  test('a webhook that does not respond times out', async () => {
    respond = () => undefined;
    const late = { ok: false, detail: 'did not respond within 0.5 s', retryable: true };
    expect(await deliver(address(), 500)).toEqual(late);
  });

  test('a webhook whose response never ends counts as delivered', async () => {
    respond = (response) => {
      const flood = setInterval(() => response.write('x'.repeat(65_536)), 5);
      response.once('close', () => clearInterval(flood));
      response.writeHead(200).write('x');
    };
    expect(await deliver()).toMatchObject({ ok: true });
  });

  test('the hub does not wait for a webhook when it ends', async () => {
    respond = () => undefined;
    const ending = new AbortController();
    const delivered = webhookHook(new Secret(address()), null, new FakeTime(), 60_000).deliver(
      '{}',
      ending.signal,
      'msg-1',
    );
    await waitFor(() => expect(taken).toHaveLength(1));
    ending.abort();
    expect(await delivered).toMatchObject({ ok: false });
  });
});

test.each([
  `http://user:${SECRET}@127.0.0.1:1/`,
  `https://127.0.0.1:1/?${SECRET}`,
  `https://nowhere.invalid/${SECRET}`,
])('case %#: only the origin of a webhook is reported', async (url) => {
  const hook = webhookHook(new Secret(url), null, new FakeTime());
  expect(hook.target).toMatch(/^https?:\/\/(127\.0\.0\.1:1|nowhere\.invalid)$/);
  const delivered = await hook.deliver('{}', never, 'msg-1');
  expect(delivered).toMatchObject({
    ok: false,
    retryable: true,
    detail: expect.stringMatching(/^is unreachable: E\w+$/),
  });
});
