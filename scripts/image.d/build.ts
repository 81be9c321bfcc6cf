// Writes the images: `node scripts/image.d/build.ts VERSION REVISION LEVEL PACKAGES OUT PART`. PACKAGES is the list of the
// Debian packages, whose files are in .cache. PART is an empty folder beside the results. Prints the paths of the layouts
// and archives.
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StagedProgram, stageProgram } from '../deb.d/program.ts';
import { type DebianPackage, debianEntries } from './debian-layer.ts';
import { IMAGE_KINDS, type ImageKind, type ImageSource, imageConfig, imageLabels } from './image.ts';
import { imageSbom } from './image-sbom.ts';
import { createLayer, type Layer, type LayerEntry } from './layer.ts';
import { type Descriptor, ImageLayout, OCI_CONFIG, OCI_EMPTY, OCI_INDEX, OCI_LAYER, OCI_MANIFEST } from './layout.ts';

type Arch = 'amd64' | 'arm64';

/** The content of the images for one architecture. */
interface Platform {
  readonly arch: Arch;
  readonly packages: readonly DebianPackage[];
  readonly program: StagedProgram;
  readonly layers: readonly Layer[];
}

const root = join(import.meta.dirname, '../..');
/** The time that npm gives to all files of packages, so that the layer with Node.js depends on no commit. */
const NODE_TIME = Date.UTC(1985, 9, 26, 8, 15) / 1000;

const [version, revision, level, list, out, part] = process.argv.slice(2);
if (!version || revision === undefined || !level || !list || !out || !part) {
  console.error('usage: node scripts/image.d/build.ts VERSION REVISION LEVEL PACKAGES OUT PART');
  process.exit(2);
}
const epoch = Number(process.env['SOURCE_DATE_EPOCH'] ?? 0);
const packages = readPackages(list);
const platforms: Platform[] = [];
for (const [arch, ofArch] of packages) platforms.push(await createPlatform(arch, ofArch));
for (const kind of IMAGE_KINDS) await writeImage(kind, out, part);
copyFileSync(list, join(out, `latchkey_${version}_oci.packages`));

function readPackages(file: string): Map<Arch, DebianPackage[]> {
  const found = new Map<Arch, DebianPackage[]>();
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const [arch, name = '', version = '', sha256 = ''] = line.split(' ');
    if (arch !== 'amd64' && arch !== 'arm64') throw new Error(`${file}: ${line}`);
    const deb = { name, version, sha256, file: join(root, '.cache/image-packages', `${sha256}.deb`) };
    found.set(arch, [...(found.get(arch) ?? []), deb]);
  }
  return found;
}

async function createPlatform(arch: Arch, packages: readonly DebianPackage[]): Promise<Platform> {
  const cpu = arch === 'amd64' ? 'x64' : 'arm64';
  const node = join(root, `.cache/node-${cpu}/node_modules/node-linux-${cpu}`);
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-image-'));
  try {
    const program = await stageProgram({ arch, version: version ?? '', node, out: folder });
    const binary: LayerEntry[] = [
      { path: 'usr/lib/latchkey/bin', type: 'directory', mode: 0o755, mtime: NODE_TIME },
      {
        path: 'usr/lib/latchkey/bin/node',
        type: 'file',
        mode: 0o755,
        mtime: NODE_TIME,
        content: readFileSync(join(node, 'bin/node')),
      },
    ];
    const command: LayerEntry = {
      path: 'usr/bin/latchkey',
      type: 'file',
      mode: 0o755,
      mtime: epoch,
      content: readFileSync(join(import.meta.dirname, 'latchkey')),
    };
    const contents: readonly (readonly [comment: string, entries: readonly LayerEntry[]])[] = [
      [
        `Debian packages: ${packages.map(({ name, version }) => `${name} ${version}`).join(', ')}`,
        await debianEntries(packages),
      ],
      [`Node.js ${program.runtime.part.version}`, binary],
      [`Latchkey ${version}`, [...entriesOf(folder), command]],
    ];
    const cache = join(root, '.cache/image-layers');
    const layers = contents.map(([comment, entries]) => createLayer(entries, { comment, level: Number(level), cache }));
    return { arch, packages, program, layers: await Promise.all(layers) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The staged files of the program; directories that lower layers have keep their times. */
function entriesOf(folder: string): LayerEntry[] {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return found.flatMap((entry): LayerEntry[] => {
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
    if (entry.isFile()) {
      return [{ path, type: 'file', mode: 0o644, mtime: epoch, content: readFileSync(join(folder, path)) }];
    }
    const isOwn = /^usr\/(lib|share\/doc)\/latchkey\b/.test(path) && path !== 'usr/lib/latchkey';
    return isOwn ? [{ path, type: 'directory', mode: 0o755, mtime: epoch }] : [];
  });
}

/** Writes the layout and the archive of an image. */
async function writeImage(kind: ImageKind, out: string, part: string): Promise<void> {
  const folder = join(out, `${kind.name}-image`);
  const newFolder = join(part, kind.name);
  const layout = new ImageLayout(newFolder);
  const manifests = platforms.map((platform) => addPlatform(layout, kind, platform));
  const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests: manifests.flat() };
  const name = { 'org.opencontainers.image.ref.name': `${kind.name}:${version}` };
  layout.finish(layout.addJson(index, OCI_INDEX, { annotations: name }));
  const archive = join(out, `${kind.name}_${version}_oci.tar`);
  const newArchive = join(part, `${kind.name}.tar`);
  await layout.archive(newArchive, epoch);
  renameSync(newArchive, archive);
  rmSync(folder, { recursive: true, force: true });
  renameSync(newFolder, folder);
  console.log(`${folder}\n${archive}`);
}

/** Adds the image for one architecture, and its SBOM as an artifact that refers to it. */
function addPlatform(
  layout: ImageLayout,
  kind: ImageKind,
  { arch, packages, program, layers }: Platform,
): Descriptor[] {
  const source: ImageSource = { version: version ?? '', revision: revision ?? '', epoch, licence: program.licence };
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: layout.addJson(imageConfig(kind, source, arch, layers), OCI_CONFIG),
    layers: layers.map(({ bytes }) => layout.addBlob(bytes, OCI_LAYER)),
    annotations: imageLabels(kind, source),
  };
  const image = layout.addJson(manifest, OCI_MANIFEST);
  const sbom = imageSbom({ kind, source, arch, digest: image.digest, program, packages });
  const artifact = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    artifactType: 'application/vnd.cyclonedx+json',
    config: layout.addJson({}, OCI_EMPTY, { data: 'e30=' }),
    layers: [layout.addBlob(Buffer.from(sbom), 'application/vnd.cyclonedx+json')],
    subject: image,
    annotations: { 'org.opencontainers.image.created': new Date(epoch * 1000).toISOString() },
  };
  // Not an image for any platform, so that engines never choose it.
  const platform = { architecture: 'unknown', os: 'unknown' };
  const { artifactType } = artifact;
  return [
    { ...image, platform: { architecture: arch, os: 'linux' } },
    layout.addJson(artifact, OCI_MANIFEST, { artifactType, platform }),
  ];
}
