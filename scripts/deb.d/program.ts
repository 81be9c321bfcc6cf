// The program as packages and images contain it, except Node.js.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import * as v from 'valibot';
import { bundle } from './bundle.ts';
import { type Component, copyrightFile, npmComponent, npmComponents, sqliteComponent } from './components.ts';
import type { NodeRuntime } from './sbom.ts';

/** What {@link stageProgram} needs. */
export interface ProgramOptions {
  /** The Debian name of the architecture. */
  readonly arch: 'amd64' | 'arm64';
  /** The version that the program reports. */
  readonly version: string;
  /** The folder of the npm package with Node.js for that architecture. */
  readonly node: string;
  /** The root directory for the files. */
  readonly out: string;
}

/** What the staged program consists of, for its SBOM. */
export interface StagedProgram {
  /** The SPDX identifier of Latchkey's own licence. */
  readonly licence: string;
  readonly runtime: NodeRuntime;
  readonly parts: readonly Component[];
}

const root = join(import.meta.dirname, '../..');
const manifestSchema = v.object({ name: v.string(), license: v.string() });

/**
 * Writes the bundle and package.json to `usr/lib/latchkey`, and the licences to `usr/share/doc/latchkey/copyright`.
 * @throws Error if a component has no licence text
 */
export async function stageProgram({ arch, version, node, out }: ProgramOptions): Promise<StagedProgram> {
  const cpu = arch === 'amd64' ? 'x64' : 'arm64';
  const { name, license } = v.parse(manifestSchema, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
  const lib = join(out, 'usr/lib/latchkey');
  const doc = join(out, 'usr/share/doc/latchkey');
  for (const folder of [lib, doc]) mkdirSync(folder, { recursive: true });
  const files = await bundle(root, cpu, join(lib, 'dist'));
  writeFileSync(join(lib, 'package.json'), `${JSON.stringify({ name, version, type: 'module' }, null, 2)}\n`);
  const parts = [...npmComponents(root, files), sqliteComponent(root)];
  const runtime = nodeRuntime(relative(root, node), cpu);
  const own = { id: license, text: readFileSync(join(root, 'LICENSE'), 'utf8').trim() };
  writeFileSync(join(doc, 'copyright'), copyrightFile(own, [runtime.part, ...parts]));
  return { licence: license, runtime, parts };
}

/**
 * Node.js and the versions of its components. They come from the same release of Node.js for this machine, because the
 * one in the package may be for another architecture; a release has the same components on all architectures.
 */
function nodeRuntime(folder: string, cpu: string): NodeRuntime {
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
