import type { FastifyInstance } from 'fastify';
import { version } from '../../system/version.ts';

/** Placeholders for the hub's origins in the cached description; `.invalid` is nobody's domain (RFC 2606). */
const PLACEHOLDER_ORIGINS = { http: 'http://hub.invalid', https: 'https://hub.invalid' };

/**
 * `GET /openapi.json`. The description is generated on the first request, because most hubs never get one. The last
 * response is shared by all requests: a thousand copies at a time would fill a small machine's memory.
 * @param httpPort the port in use without TLS
 */
export function serveOpenApi(app: FastifyInstance, httpPort: number): void {
  const generate = async () => {
    const { openApiDocument } = await import('./document.ts');
    return JSON.stringify(openApiDocument(PLACEHOLDER_ORIGINS, version()));
  };
  let generated: Promise<string> | undefined;
  let last = { host: '', body: Buffer.alloc(0) };
  app.get('/openapi.json', { exposeHeadRoute: true }, async ({ host, hostname }, reply) => {
    generated ??= generate();
    const text = await generated;
    if (last.host !== host) {
      const http = escapeJson(`http://${hostname}:${httpPort}`);
      const https = escapeJson(`https://${host}`);
      const filled = text
        .replaceAll(PLACEHOLDER_ORIGINS.http, () => http)
        .replaceAll(PLACEHOLDER_ORIGINS.https, () => https);
      last = { host, body: Buffer.from(filled) };
    }
    return reply.type('application/json; charset=utf-8').send(last.body);
  });
}

/** The text as the content of a JSON string. */
function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
