import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import * as client from 'openid-client';
import { afterAll, describe, expect, it } from 'vitest';
import { HubProcess, reservePort } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { ProxyClient } from '../support/proxy-client.ts';
import { waitFor } from '../support/wait-for.ts';

const resources = new AsyncDisposableStack();
afterAll(() => resources.disposeAsync());
const emulator = resources.use(await startPortal());
const port = await reservePort();
const hub = resources.use(await HubProcess.start({ emulator, here: true, toml: `[local]\nport = ${port}` }));
const wallbox = await hub.addAppliance('wallbox');
await hub.pair('wallbox', emulator);

/** The status of a token request with these headers. */
async function statusFor(headers: Record<string, string | undefined> = {}, from?: string): Promise<number> {
  await using program = new ProxyClient(port, '', {}, from);
  const credentials = `client_id=${wallbox.client_id}&client_secret=${wallbox.client_secret}`;
  const response = await program.send(
    'POST',
    '/oauth/token',
    {
      host: `localhost:${port}`,
      'x-ingress-path': undefined,
      'content-type': 'application/x-www-form-urlencoded',
      ...headers,
    },
    `grant_type=client_credentials&${credentials}`,
  );
  return response.status;
}

describe('the port for programs on the same machine', () => {
  it('a stock client finds the endpoints, and gets and revokes a token over plain HTTP', async () => {
    const found = await client.discovery(
      new URL(`http://127.0.0.1:${port}`),
      wallbox.client_id,
      wallbox.client_secret,
      undefined,
      { algorithm: 'oauth2', execute: [client.allowInsecureRequests] },
    );
    const first = await client.clientCredentialsGrant(found);
    expect(first.access_token).toBe((await hub.requestToken(wallbox)).body['access_token']);
    await client.tokenRevocation(found, first.access_token);
    const second = await client.clientCredentialsGrant(found);
    expect(second.access_token).not.toBe(first.access_token);
    expect((await hub.status()).hub).toMatchObject({ local_port: port });
    expect((await hub.cli('status')).stdout).toContain(`(HTTP), ${port} (HTTP, on this machine only)\n`);
  });

  it.each<[string, Record<string, string>, number]>([
    ['by its address', { host: `127.0.0.1:${port}` }, 200],
    ['by its IPv6 address', { host: '[::1]:8481' }, 200],
    ['without a port', { host: 'localhost' }, 200],
    ['by a name that a web page has pointed here', { host: `evil.example:${port}` }, 421],
    ['by another address', { host: '192.168.1.20' }, 421],
    ['from a web page', { origin: `http://localhost:${port}` }, 403],
    ['through a proxy (RFC 7239)', { forwarded: 'for=192.168.1.9' }, 403],
    ['through a proxy, as most say', { 'x-forwarded-for': '192.168.1.9' }, 403],
    ['through a gateway', { via: '1.1 gateway' }, 403],
  ])('a request %s is answered as it should be', async (_, headers, expected) => {
    expect(await statusFor(headers)).toBe(expected);
  });

  it('localhost is this port, whichever of its addresses a program tries first', async () => {
    const answer = await fetch(`http://[::1]:${port}/.well-known/oauth-authorization-server`);
    expect(await answer.json()).toMatchObject({ issuer: `http://[::1]:${port}` });
  });

  it('nothing else is there', async () => {
    await using program = new ProxyClient(port, '', { host: 'localhost' });
    const { status, text } = await program.get('/', { 'x-ingress-path': undefined, accept: 'text/html' });
    expect({ status, text }).toEqual({ status: 404, text: expect.stringContaining(`:${hub.httpsPort}/`) });
  });

  it('it is open on loopback only, and requests wait while the hub reloads', async () => {
    const asking = Array.from({ length: 20 }, () => statusFor());
    const reload = hub.reload();
    const during = Array.from({ length: 20 }, () => statusFor());
    await reload;
    expect(new Set([...(await Promise.all(asking)), ...(await Promise.all(during))])).toEqual(new Set([200]));
    // 127.0.0.2 is an address of this machine on which the port would answer if it was open on all addresses.
    const other = createServer();
    other.listen(port, '127.0.0.2');
    await once(other, 'listening');
    other.close();
  });

  it.each(['127.0.0.1', '::1'])(
    'a port that another program uses on %s is logged, and the hub runs without it',
    async (address) => {
      const other = createServer();
      const taken = await reservePort();
      other.listen(taken, address);
      await once(other, 'listening');
      const file = join(hub.directory, 'latchkey.toml');
      const text = await readFile(file, 'utf8');
      await writeFile(file, text.replace(/\[local\]\nport = \d+/, `[local]\nport = ${taken}`));
      await hub.reload();
      await waitFor(() => expect(hub.events('local_unavailable').at(-1)).toMatchObject({ port: taken, retry_in: 30 }));
      if (address !== '127.0.0.1') await expect(fetch(`http://127.0.0.1:${taken}/`)).rejects.toThrow();
      expect((await hub.status()).hub).not.toHaveProperty('local_port');
      await expect(statusFor()).rejects.toThrow('ECONNREFUSED');
      expect(await hub.requestToken(wallbox)).toMatchObject({ status: 200 });
      other.close();
    },
  );
});
