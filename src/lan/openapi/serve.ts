import type { FastifyInstance } from 'fastify';
import { version } from '../../system/version.ts';

/**
 * `GET /openapi.json`. The description is made when it is first asked for: most hubs never are.
 * @param httpPort the port in use without TLS
 */
export function serveOpenApi(app: FastifyInstance, httpPort: number): void {
  const load = async () => ({ ...(await import('./document.ts')), current: version() });
  let loading: ReturnType<typeof load> | undefined;
  app.get('/openapi.json', { exposeHeadRoute: true }, async ({ host, hostname }) => {
    loading ??= load();
    const { openApiDocument, current } = await loading;
    return openApiDocument({ http: `http://${hostname}:${httpPort}`, https: `https://${host}` }, current);
  });
}
