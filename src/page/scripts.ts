import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { BROWSER_ROUTE } from './http.ts';

/** `.ts` when the hub runs from its sources, `.js` when it was built. */
const EXTENSION = extname(import.meta.filename);

/** The module that the installer's page starts with. */
export const mainScript = `page${EXTENSION}`;

/** The library that brings a page that is shown in line with a newer one, as its own package has it. */
const IDIOMORPH = 'idiomorph.js';

/** What browsers get may be asked for by anybody: it is the same on every hub. */
export function serveScripts(app: FastifyInstance): void {
  app.get<{ readonly Params: { readonly file: string } }>('/page/:file', BROWSER_ROUTE, async (request, reply) => {
    const script = await readScript(request.params.file);
    if (script === null) return reply.code(404).send();
    return reply
      .headers({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' })
      .type('text/javascript; charset=utf-8')
      .send(script);
  });
}

/**
 * One of the page's scripts as JavaScript, by its file name; from the sources its types are stripped.
 * @returns null where there is none of that name
 */
async function readScript(file: string): Promise<string | null> {
  if (file === IDIOMORPH) return (await readIfExists(scriptPath(file))) ?? (await readIfExists(idiomorphPackagePath()));
  if (!/^[a-z-]+\.[jt]s$/.test(file) || extname(file) !== EXTENSION) return null;
  const text = await readIfExists(scriptPath(file));
  return text !== null && EXTENSION === '.ts' ? stripTypeScriptTypes(text) : text;
}

/** Where the packages have it. */
function scriptPath(file: string): string {
  return join(import.meta.dirname, 'browser', file);
}

function idiomorphPackagePath(): string {
  return fileURLToPath(import.meta.resolve('idiomorph/dist/idiomorph.min.js'));
}

async function readIfExists(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
