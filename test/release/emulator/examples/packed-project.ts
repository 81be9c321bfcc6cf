import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root, runCommand, temporaryFolder } from '../../../project/checkout.ts';

/** A separate project in its own folder, with Latchkey installed from its packed tarball. */
export interface PackedProject extends Disposable {
  readonly path: string;
  /** Latchkey's command line, as installed. */
  readonly main: string;
  /** Writes a file; its path is relative to the project's folder. */
  write(path: string, text: string): void;
}

/**
 * Packs the built Latchkey and unpacks it into a new project. From the packages of the checkout, the project sees only
 * those that Latchkey depends on, and `more`: the project's own dependencies.
 */
export async function createPackedProject(...more: readonly string[]): Promise<PackedProject> {
  const folder = temporaryFolder();
  const path = folder.path;
  const pack = await runCommand('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', path], {
    cwd: root,
  });
  const tarball = join(path, pack.stdout.trim());
  const installed = join(path, 'node_modules/latchkey');
  mkdirSync(installed, { recursive: true });
  const unpack = await runCommand('/usr/bin/tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  if (pack.status !== 0 || unpack.status !== 0) throw new Error(`packing failed: ${pack.stderr}${unpack.stderr}`);
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  for (const name of [...Object.keys(dependencies), ...more]) {
    const link = join(path, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), link);
  }
  const write: PackedProject['write'] = (file, text) => {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), text);
  };
  write('package.json', JSON.stringify({ name: 'scratch', private: true, type: 'module' }));
  return { path, main: join(installed, 'dist/main.js'), write, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}
