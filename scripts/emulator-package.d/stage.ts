// Writes the contents of the emulator's npm package: `node scripts/emulator-package.d/stage.ts VERSION OUT`.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import * as v from 'valibot';
import { PAGES, packageTexts } from './readme.ts';

const root = join(import.meta.dirname, '../..');
const [version, out] = process.argv.slice(2);
if (version === undefined || out === undefined) {
  console.error('usage: node scripts/emulator-package.d/stage.ts VERSION OUT');
  process.exit(2);
}

/** The folders and files of the sources that the package may contain: nothing of the hub. */
const ALLOWED =
  /^(src\/emulator\/|src\/clouds\/|src\/cli\/emulator\/|src\/cli\/terminal\/|src\/system\/|src\/core\/(clock|failure|random)\.ts$|scripts\/emulator-package\.d\/)/;
/** The oldest Node.js whose SQLite needs no flag. */
const NODE = '>=22.13';

const manifestSchema = v.object({
  license: v.string(),
  author: v.string(),
  dependencies: v.record(v.string(), v.string()),
});
const own = v.parse(manifestSchema, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));

mkdirSync(out, { recursive: true });
const imported = await bundle(join(out, 'dist/lib'));
declareTypes(join(out, 'types'));
writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest(imported), null, 2)}\n`);
cpSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
for (const page of PAGES) cpSync(join(root, 'docs', page), join(out, 'docs', page));
for (const [file, text] of packageTexts(root)) writeFileSync(join(out, file), text);

/**
 * Writes the program, the library and the console's script. They are two folders below package.json, as deep as the
 * source modules that look for it.
 * @returns the names of the npm packages that they import
 */
async function bundle(folder: string): Promise<string[]> {
  const common = {
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
    outdir: folder,
  } as const satisfies BuildOptions;
  const { metafile } = await build({
    ...common,
    entryPoints: ['scripts/emulator-package.d/index.ts', 'scripts/emulator-package.d/main.ts'],
    chunkNames: '[name]-[hash]',
    platform: 'node',
    target: 'node22',
    splitting: true,
    packages: 'external',
    alias: { 'better-sqlite3': './scripts/emulator-package.d/node-sqlite.ts' },
  });
  const foreign = Object.keys(metafile.inputs).filter((path) => !ALLOWED.test(path));
  if (foreign.length > 0)
    throw new Error(`the emulator imports ${foreign.join(', ')}, which must not be in its package`);
  chmodSync(join(folder, 'main.js'), 0o755);
  await build({
    ...common,
    entryPoints: { main: 'src/emulator/console/browser/main.ts' },
    outdir: join(folder, 'browser'),
    platform: 'browser',
    target: 'es2022',
  });
  const imports = Object.values(metafile.outputs).flatMap(({ imports: found }) => found);
  const external = imports.filter((one) => one.external === true && !one.path.startsWith('node:'));
  return [...new Set(external.map(({ path }) => path))].sort();
}

/** Writes the type declarations of the library, and of what they refer to. */
function declareTypes(folder: string): void {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const all = `${folder}.all`;
  execFileSync(process.execPath, [compiler, '-p', import.meta.dirname, '--outDir', all], { stdio: ['ignore', 2, 2] });
  const copied = new Set<string>();
  const copy = (file: string): void => {
    if (copied.has(file)) return;
    copied.add(file);
    cpSync(join(all, file), join(folder, file));
    const text = readFileSync(join(all, file), 'utf8');
    for (const [, path = ''] of text.matchAll(/(?:from|import)\s*\(?['"](\.[^'"]+)\.[jt]s['"]/g)) {
      copy(join(dirname(file), `${path}.d.ts`));
    }
  };
  copy('emulator/index.d.ts');
  rmSync(all, { recursive: true });
}

function manifest(packages: readonly string[]): object {
  const dependencies = packages.map((name) => {
    const exact = own.dependencies[name];
    if (exact === undefined) throw new Error(`the emulator imports ${name}, which package.json does not list`);
    return [name, exact] as const;
  });
  // JSON leaves out what the maker has not set.
  const { LATCHKEY_HOMEPAGE: homepage, LATCHKEY_REPOSITORY: repository, LATCHKEY_BUGS: bugs } = process.env;
  return {
    name: 'latchkey-emulator',
    version,
    description:
      'Emulates a cloud portal and any OAuth 2.0 server or OpenID provider on your own machine, for tests of their clients',
    type: 'module',
    keywords: ['oauth2', 'emulator', 'mock', 'test', 'device-flow', 'refresh-token', 'pkce', 'openid-connect', 'dpop'],
    homepage: homepage || undefined,
    repository: repository ? { type: 'git', url: repository } : undefined,
    bugs: bugs || undefined,
    license: own.license,
    author: own.author,
    engines: { node: NODE },
    bin: { 'latchkey-emulator': 'dist/lib/main.js' },
    exports: { '.': { types: './types/emulator/index.d.ts', default: './dist/lib/index.js' } },
    dependencies: Object.fromEntries(dependencies),
  };
}
