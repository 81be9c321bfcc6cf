import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notFound, serve } from '../http/routes.ts';
import type { Portal } from '../portal.ts';
import { consolePage } from './page.ts';
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

/**
 * Keeps web pages of other origins from changing anything through the emulator's API: a browser says where a request comes
 * from (Fetch Metadata, `Origin`), and these are refused with 403. Clients that are no browsers send neither header and are
 * let through. Pages that point a name of their own at the emulator are refused before (`refuseForeignNames`).
 */
function refuseForeignPages(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.method === 'GET' || request.method === 'HEAD') return;
    if (request.routeOptions.url?.startsWith('/_emulator/') !== true || !isForeign(request)) return;
    return reply.code(403).send({
      error: 'invalid_request',
      message: 'origin: found a page of another origin; allowed are the console and clients that are no browsers',
    });
  });
}

function isForeign({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = headers.origin;
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== headers.host;
}

/** `.ts` when the emulator runs from its sources, `.js` when it was built. */
const EXTENSION = extname(import.meta.filename);

/** The file that the page starts with. */
const mainModule = `main${EXTENSION}`;

/**
 * One of the page's modules as JavaScript, by its file name; from the sources its types are stripped.
 * @returns null where there is none of that name
 */
async function browserModule(file: string): Promise<string | null> {
  if (!/^[a-z-]+\.[jt]s$/.test(file) || extname(file) !== EXTENSION) return null;
  try {
    const text = await readFile(join(import.meta.dirname, 'browser', file), 'utf8');
    return EXTENSION === '.ts' ? stripTypeScriptTypes(text) : text;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
