import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../../..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

/**
 * Compiles a file in the project of a package's user, and writes nothing.
 * @param target the version of ECMAScript
 * @throws Error with the compiler's messages
 */
export async function checkTypes(project: string, file: string, target: string): Promise<void> {
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--lib', 'es2024,esnext.disposable'];
  const types = ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node', '--target', target];
  await promisify(execFile)(process.execPath, [TSC, ...options, ...types, file], { cwd: project }).catch(
    (error: { stdout?: string }) => {
      throw new Error(error.stdout);
    },
  );
}
