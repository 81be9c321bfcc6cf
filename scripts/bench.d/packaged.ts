import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Subject } from './suite.ts';

/**
 * Builds the program of a subject as its packages have it, by its own rules.
 * @param folder where it is put
 * @returns its main.js
 */
export async function packagedProgram({ root }: Subject, folder: string): Promise<string> {
  const { bundle } = (await import(join(root, 'scripts/deb.d/bundle.ts'))) as typeof import('../deb.d/bundle.ts');
  await bundle(root, process.arch === 'arm64' ? 'arm64' : 'x64', join(folder, 'dist'));
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
  return join(folder, 'dist/main.js');
}
