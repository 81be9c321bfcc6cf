import { once } from 'node:events';
import { connect } from 'node:net';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { setUpOnce } from '../support/set-up.ts';

let side: LanServerHarness;
setUpOnce(async (parts) => {
  side = parts.use(await LanServerHarness.start());
});

describe("the hub's address in a browser", () => {
  it.for(['/pair', '/pair?user_code=WDJB-MJHT'])('the hub redirects %s from HTTP to HTTPS', async (path) => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const plain = await request(`http://127.0.0.1:${side.server.httpPort}${path}`, { headers: { host } });
      await plain.body.dump();
      expect(plain.statusCode).toBe(307);
      expect(plain.headers['location']).toBe(`https://${host}:${side.server.httpsPort}${path}`);
    }
  });

  it("a page that does not exist or a method that is not allowed leads a browser to the hub's page, and tells a program", async () => {
    const send = (path: string, accept: string) =>
      request(`https://127.0.0.1:${side.server.httpsPort}${path}`, { dispatcher: side.agent, headers: { accept } });
    for (const [path, status] of [
      ['/nothing', 404],
      ['/appliances/wallbox/pair', 405],
    ] as const) {
      const { statusCode, body } = await send(path, 'text/html,*/*;q=0.8');
      expect(statusCode).toBe(status);
      expect(await body.text()).toContain('href="/">To the hub’s page</a>');
    }
    for (const [path, status, description] of [
      ['/oauth/token', 405, 'this address does not accept GET: use POST'],
      ['/token', 404, expect.stringContaining('/.well-known/oauth-authorization-server has those of the endpoints')],
    ] as const) {
      const { statusCode, headers, body } = await send(path, 'application/json');
      const json = { error: 'invalid_request', error_description: description };
      expect({ statusCode, json: await body.json() }).toEqual({ statusCode: status, json });
      expect(headers['allow']).toBe(status === 405 ? 'POST' : undefined);
    }
  });

  it('the hub tells a browser that sends HTTP to the HTTPS port to use https', async () => {
    const socket = connect(side.server.httpsPort, '127.0.0.1').setEncoding('latin1');
    await once(socket, 'connect');
    socket.write(`GET / HTTP/1.1\r\nhost: 127.0.0.1:${side.server.httpsPort}\r\n\r\n`);
    let text = '';
    for await (const piece of socket) text += String(piece);
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(text).toMatch(/\r\n\r\nThis port requires HTTPS: use an address that begins with https:\/\/$/);
  });
});
