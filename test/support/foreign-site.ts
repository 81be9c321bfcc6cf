import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';

/**
 * Starts a site that is not the hub's, on this machine.
 * @param body the body of the page at a path
 * @param tls the certificate and key, if it uses TLS
 */
export async function startForeignSite(
  body: (path: string) => string,
  tls?: { readonly cert: string; readonly key: string },
) {
  const listener: RequestListener = ({ url = '/' }, response) => {
    const html = `<!doctype html><title>Other</title>${body(url)}`;
    response.setHeader('content-type', 'text/html; charset=utf-8').end(html);
  };
  const server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
