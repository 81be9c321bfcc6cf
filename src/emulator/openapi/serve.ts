import type { FastifyInstance } from 'fastify';
import { version } from '../../system/version.ts';
import { serve } from '../http/routes.ts';
import type { Portal } from '../portal.ts';

/** `GET /_emulator/openapi.json`. The description is made when it is first asked for: most runs never do. */
export function serveOpenApi(app: FastifyInstance, portal: Portal): void {
  serve(app, '/_emulator/openapi.json', null, {
    async GET(_request, reply) {
      const { openApiDocument } = await import('./document.ts');
      return reply.send(openApiDocument(portal.origins(), version()));
    },
  });
}
