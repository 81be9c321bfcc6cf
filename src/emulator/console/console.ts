import { readFile } from 'node:fs/promises';
import module from 'node:module';
import { extname, join } from 'node:path';
import * as v from 'valibot';
import { type ApiOperation, NotFoundBody } from '../api/operation.ts';
import { consolePage } from './page.ts';
import { STYLE } from './style.ts';

/**
 * The console: a page at `/_emulator/`, its style and its modules. It reads and changes everything through the
 * emulator's API.
 */
export const consoleOperations: readonly ApiOperation[] = [
  {
    method: 'get',
    path: '/_emulator/',
    id: 'console',
    summary: 'Show the console page',
    responses: { 200: { description: 'For people', body: 'text/html' } },
    handle({ portal }, _request, reply) {
      reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8');
      return consolePage(portal, `/_emulator/console/${mainModule}`);
    },
  },
  {
    method: 'get',
    path: '/_emulator/console.css',
    id: 'consoleStyle',
    summary: "Get the console page's style sheet",
    responses: { 200: { description: 'For browsers', body: 'text/css' } },
    handle(_api, _request, reply) {
      reply.type('text/css; charset=utf-8');
      return STYLE;
    },
  },
  {
    method: 'get',
    path: '/_emulator/console/{file}',
    id: 'consoleModule',
    summary: 'Get a script module of the console page',
    params: v.strictObject({ file: v.string() }),
    responses: {
      200: { description: 'For browsers', body: 'text/javascript' },
      404: { description: 'There is no such module', body: NotFoundBody },
    },
    async handle(_api, { url }, reply) {
      const script = await browserModule(url.slice(url.lastIndexOf('/') + 1));
      if (script !== null) reply.type('text/javascript; charset=utf-8');
      return script;
    },
  },
];

/** The page loads only from its own origin, and no text that it shows can become markup (Trusted Types). */
const CONTENT_SECURITY_POLICY = [
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

const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
};

/** `.ts` if the emulator runs from its sources, `.js` if it was built. */
const MODULE_EXTENSION = extname(import.meta.filename);

/** The page's main module. */
const mainModule = `main${MODULE_EXTENSION}`;

/**
 * Reads a module of the page as JavaScript. From the sources it strips the types (not by name: Node.js 20 would fail at
 * the import, before the npm package can say which one it needs).
 * @returns null if there is no such module
 */
async function browserModule(file: string): Promise<string | null> {
  if (!/^[a-z-]+\.[jt]s$/.test(file) || extname(file) !== MODULE_EXTENSION) return null;
  try {
    const text = await readFile(join(import.meta.dirname, 'browser', file), 'utf8');
    return MODULE_EXTENSION === '.ts' ? module.stripTypeScriptTypes(text) : text;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
