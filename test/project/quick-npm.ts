import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './checkout.ts';

/** The PATH without the programs of a checkout or the test run. */
export const machinePath = (process.env['PATH'] ?? '').split(':').filter((folder) => !folder.includes('node_modules'));

/** The variables of a person's shell that `npm ci` may need, without those that this test run has set. */
export const shellEnvironment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) =>
    /^(HOME|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|(https?|no|all)_proxy|npm_config_(cache|cafile|registry|userconfig))$/i.test(
      name,
    ),
  ),
);

/** Creates a folder with a `node` that reports an older version. @returns the folder, for PATH */
export function olderNode(folder: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const node = `if [ "$1" = --version ]; then echo v18.20.4; else exec ${machineProgram('node') ?? process.execPath} "$@"; fi`;
  writeProgram(join(bin, 'node'), node);
  return bin;
}

export function writeProgram(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

export function machineProgram(name: string): string | undefined {
  return machinePath.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/**
 * Adds an npm to `bin` that installs by linking the packages of this checkout, which the test run has just installed.
 */
export function quickNpm(bin: string): void {
  const npm = machineProgram('npm') ?? 'npm';
  const script = [
    'case $PWD in',
    '  */scripts/runtime) from=scripts/runtime ;;',
    '  */.cache/node-*) from=.cache/$(basename "$PWD") ;;',
    '  *) from=. ;;',
    'esac',
    `packages='${root}'/$from/node_modules`,
    `case $1 in ci | install) if [ -d "$packages" ]; then exec cp -al "$packages" .; fi ;; esac`,
    `exec ${npm} "$@"`,
  ];
  writeProgram(join(bin, 'npm'), script.join('\n'));
}
