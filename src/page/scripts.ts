import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';

/** `.ts` if the hub runs from its sources, `.js` if it was built. */
const EXTENSION = extname(import.meta.filename);

/** The entry module of the installer's page. */
export const mainScript = `page${EXTENSION}`;

/** The library that updates the shown page to a newer one. */
const IDIOMORPH = 'idiomorph.js';

/** Serves the page's scripts. They need no sign-in, because they are the same on every hub. */
export function serveScripts(app: FastifyInstance): void {
  app.get<{ readonly Params: { readonly file: string } }>('/page/:file', async (request, reply) => {
    const script = await readScript(request.params.file);
    if (script === null) return reply.code(404).send();
    return reply
      .headers({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' })
      .type('text/javascript; charset=utf-8')
      .send(script);
  });
}

/**
 * A script of the page as JavaScript, by its file name. From the sources, the types are stripped.
 * @returns null if there is no such script
 */
async function readScript(file: string): Promise<string | null> {
  if (file === IDIOMORPH) return (await readIfExists(scriptPath(file))) ?? (await readIfExists(idiomorphPackagePath()));
  if (!/^[a-z-]+\.[jt]s$/.test(file) || extname(file) !== EXTENSION) return null;
  const text = await readIfExists(scriptPath(file));
  return text !== null && EXTENSION === '.ts' ? stripTypeScriptTypes(text) : text;
}

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
