import type { FastifyInstance } from 'fastify';
import { version } from '../../system/version.ts';

/** Stand for the hub's origins in the description, as nobody's. */
const PLACEHOLDER_ORIGINS = { http: 'http://hub.invalid', https: 'https://hub.invalid' };

/**
 * `GET /openapi.json`. The description is made when it is first asked for: most hubs never are. The last one is
 * kept: a thousand at a time would fill a small machine's memory.
 * @param httpPort the port in use without TLS
 */
export function serveOpenApi(app: FastifyInstance, httpPort: number): void {
  const make = async () => {
    const { openApiDocument } = await import('./document.ts');
    return JSON.stringify(openApiDocument(PLACEHOLDER_ORIGINS, version()));
  };
  let making: Promise<string> | undefined;
  let last = { host: '', body: Buffer.alloc(0) };
  app.get('/openapi.json', { exposeHeadRoute: true }, async ({ host, hostname }, reply) => {
    making ??= make();
    const text = await making;
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

/** As it stands inside of a JSON string. */
function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
