import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority, issueLeaf } from '../../../src/system/x509/issuing.ts';
import { RELAY } from '../../page/relay-addresses.ts';

/** The services that browsers connect to by themselves. The hosts of the tests have reserved names. */
const OWN_SERVICES = /\.(?:com|net|org)$/;

/** A request, by its full address, as it arrived; `CONNECT <host>:<port>` for TLS to a host that does not exist. */
interface ArrivedRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** A home network and the internet, as a browser sees them. */
export interface RelayNetwork extends AsyncDisposable {
  /** The port of the proxy, on 127.0.0.1. It serves `cloud.example`, `relay.example`, and every plain HTTP host. */
  readonly proxyPort: number;
  /** The callback address of a hub on 127.0.0.1, for browsers that connect without the proxy. */
  readonly callback: string;
  /** All requests to `relay.example`, to the hub and to any other host. */
  readonly arrived: ArrivedRequest[];
}

/** A page that loads nothing else. */
const page = (heading: string) => `<title>${heading}</title><link rel="icon" href="data:,"><p id="heading">${heading}`;

/**
 * Starts the servers: a public web server that hosts the relay, a cloud that redirects to it, and a hub.
 * The cloud redirects from `https://cloud.example/authorize` to the relay with the query that it got.
 */
export async function startRelayNetwork(): Promise<RelayNetwork> {
  await using starting = new AsyncDisposableStack();
  const arrived: ArrivedRequest[] = [];
  const authority = await createAuthority();
  const names = ['cloud.example', 'relay.example'];
  const { certificate, key } = await issueLeaf(authority, { names, addresses: [], now: Date.now() });

  const respond =
    (origin: (host: string | undefined) => string): RequestListener =>
    ({ url = '', headers }, response) => {
      const { hostname, pathname } = new URL(url, origin(headers.host));
      // The request line as it arrived: a URL object could change the query.
      const full = url.startsWith('/') ? `${origin(headers.host)}${url}` : url;
      const query = full.includes('?') ? full.slice(full.indexOf('?')) : '';
      if (hostname === 'cloud.example') {
        if (pathname === '/authorize') {
          response.statusCode = 302;
          response.setHeader('location', `https://relay.example/relay.html${query}`);
        }
        response.setHeader('content-type', 'text/html').end(page('Cloud'));
        return;
      }
      if (!OWN_SERVICES.test(hostname)) arrived.push({ url: full, headers });
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(hostname === 'relay.example' && pathname === '/relay.html' ? RELAY : page('Hub'));
    };

  const plain = respond((host) => `http://${host}`);
  const secure = createSecureServer(
    { cert: certificate, key },
    respond((host) => `https://${host}`),
  );
  const proxy = createServer(plain).on('connect', ({ url }, socket) => {
    if (names.some((name) => url === `${name}:443`)) {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      secure.emit('connection', socket);
      return;
    }
    if (!OWN_SERVICES.test(new URL(`https://${url}`).hostname)) arrived.push({ url: `CONNECT ${url}`, headers: {} });
    socket.end('HTTP/1.1 502 Bad gateway\r\n\r\n');
  });
  const proxyPort = await listen(starting, proxy);
  const hubPort = await listen(starting, createServer(plain));
  const resources = starting.move();
  return {
    proxyPort,
    callback: `http://127.0.0.1:${hubPort}/callback`,
    arrived,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Listens on a free port of 127.0.0.1. @returns the port */
async function listen(resources: AsyncDisposableStack, server: ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  resources.defer(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return (server.address() as AddressInfo).port;
}
