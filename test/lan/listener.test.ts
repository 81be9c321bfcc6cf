import { once } from 'node:events';
import { createServer } from 'node:https';
import { connect, createServer as createPlainServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectSecure } from 'node:tls';
import { expect, it } from 'vitest';
import { Listener } from '../../src/lan/listener.ts';
import { ListeningSocket } from '../../src/lan/listening-socket.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';

it('the hub tells a client with a late handshake that it took too long, and not that its request is invalid', async () => {
  const authority = await createAuthority();
  const { key, certificate } = await issueLeaf(authority, { names: [], addresses: ['127.0.0.1'], now: Date.now() });
  const server = createServer({ key, cert: certificate, handshakeTimeout: 50 });
  const socket = await ListeningSocket.listen({ host: '127.0.0.1', port: 0 });
  // The connection stays open until its client has read the response.
  new Listener(server, socket, { allowHalfOpen: false, timers: { ...systemTimers, after: () => () => undefined } });

  // The proxy holds back what the client sends until the handshake timeout, as if the hub had not read it yet.
  const refused = once(server, 'clientError');
  const between = createPlainServer(async (client) => {
    const hub = connect(socket.port, '127.0.0.1');
    await refused;
    client.pipe(hub).pipe(client);
  });
  await once(between.listen(0, '127.0.0.1'), 'listening');
  const { port } = between.address() as { port: number };
  const client = connectSecure({ port, host: '127.0.0.1', ca: authority.certificate });
  client.write('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  expect(await text(client)).toMatch(/^HTTP\/1\.1 408 .+The request took too long\.$/s);
  between.close();
  socket.close();
});
