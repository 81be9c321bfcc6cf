import type { FastifyInstance, FastifyReply } from 'fastify';
import { notFound, serve } from '../http/server.ts';
import type { Portal } from '../portal.ts';
import { refuseForeignPages } from './foreign-pages.ts';
import { consolePage } from './page.ts';
import { browserModule, mainModule } from './scripts.ts';
import { STYLE } from './style.ts';

/**
 * The console for people: a page at `/_emulator/`, its style and its modules. What it shows and does goes through the
 * emulator's own API.
 */
export function serveConsole(app: FastifyInstance, portal: Portal): void {
  refuseForeignPages(app);
  serve(app, '/_emulator/', null, {
    GET: async (_request, reply) => sendConsole(reply, consolePage(portal, `/_emulator/console/${mainModule}`)),
  });
  serve(app, '/_emulator/console.css', null, {
    GET: async (_request, reply) => reply.type('text/css; charset=utf-8').send(STYLE),
  });
  serve(app, '/_emulator/console/:file', null, {
    async GET(request, reply) {
      const script = await browserModule(request.url.slice(request.url.lastIndexOf('/') + 1));
      if (script === null) return notFound(reply);
      return reply.type('text/javascript; charset=utf-8').send(script);
    },
  });
}

/** Everything the page loads comes from its own origin, and nothing it shows can become markup (trusted types). */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

function sendConsole(reply: FastifyReply, page: string): FastifyReply {
  return reply
    .header('content-security-policy', POLICY)
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .header('cross-origin-opener-policy', 'same-origin')
    .type('text/html; charset=utf-8')
    .send(page);
}
