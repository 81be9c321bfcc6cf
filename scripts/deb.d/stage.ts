// Writes the contents of the Debian package except Node.js: `node scripts/deb.d/stage.ts ARCH VERSION NODE OUT`. NODE
// is the folder of the npm package with Node.js for that architecture. The bundle, package.json, the licences and the
// SBOM are written to OUT.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import * as v from 'valibot';
import { bundle } from './bundle.ts';
import { copyrightFile, npmComponent, npmComponents, sqliteComponent } from './components.ts';
import { createSbom, type NodeRuntime } from './sbom.ts';

const root = join(import.meta.dirname, '../..');
const [arch, version, node, out] = process.argv.slice(2);
if ((arch !== 'amd64' && arch !== 'arm64') || version === undefined || node === undefined || out === undefined) {
  console.error('usage: node scripts/deb.d/stage.ts amd64|arm64 VERSION NODE OUT');
  process.exit(2);
}
const cpu = arch === 'amd64' ? 'x64' : 'arm64';
const manifestSchema = v.object({ name: v.string(), license: v.string() });
const { name, license } = v.parse(manifestSchema, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));

const lib = join(out, 'usr/lib/latchkey');
const doc = join(out, 'usr/share/doc/latchkey');
for (const folder of [lib, doc]) mkdirSync(folder, { recursive: true });
const files = await bundle(root, cpu, join(lib, 'dist'));
writeFileSync(join(lib, 'package.json'), `${JSON.stringify({ name, version, type: 'module' }, null, 2)}\n`);

const parts = [...npmComponents(root, files), sqliteComponent(root)];
const runtime = nodeRuntime(relative(root, node));
const epoch = Number(process.env['SOURCE_DATE_EPOCH'] ?? 0);
const own = { id: license, text: readFileSync(join(root, 'LICENSE'), 'utf8').trim() };
writeFileSync(join(doc, 'copyright'), copyrightFile(own, [runtime.part, ...parts]));
writeFileSync(join(doc, 'sbom.cdx.json'), createSbom({ version, arch, epoch, licence: license }, runtime, parts));

/**
 * Node.js and the versions of its components. They come from the same release of Node.js for this machine, because the
 * one in the package may be for another architecture; a release has the same components on all architectures.
 */
function nodeRuntime(folder: string): NodeRuntime {
  const part = npmComponent(root, folder);
  const here = join(root, folder.replaceAll(cpu, process.arch), 'bin/node');
  const versions = v.parse(
    v.record(v.string(), v.string()),
    JSON.parse(execFileSync(here, ['-p', 'JSON.stringify(process.versions)'], { encoding: 'utf8' })),
  );
  const { node: own, modules: _modules, napi: _napi, unicode: _unicode, ...inside } = versions;
  if (own !== part.version) throw new Error(`${here} is ${own}, not ${part.version}`);
  return {
    part: { ...part, name: 'node', purl: `pkg:generic/node@${part.version}` },
    sha256: createHash('sha256')
      .update(readFileSync(join(root, folder, 'bin/node')))
      .digest('hex'),
    inside: new Map(Object.entries(inside).filter(([, text]) => text !== '')),
  };
}
