import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';

/** `.ts` when the emulator runs from its sources, `.js` when it was built. */
const EXTENSION = extname(import.meta.filename);

/** The file that the page starts with. */
export const mainModule = `main${EXTENSION}`;

/**
 * One of the page's modules as JavaScript, by its file name; from the sources its types are stripped.
 * @returns null where there is none of that name
 */
export async function browserModule(file: string): Promise<string | null> {
  if (!/^[a-z-]+\.[jt]s$/.test(file) || extname(file) !== EXTENSION) return null;
  try {
    const text = await readFile(join(import.meta.dirname, 'browser', file), 'utf8');
    return EXTENSION === '.ts' ? stripTypeScriptTypes(text) : text;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
