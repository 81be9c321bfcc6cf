// The entries of the lowest layer: Debian's packages, and the few files that an installed Debian would have besides.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';
import { extract, type Header } from 'tar-stream';
import type { LayerEntry } from './layer.ts';

/** A Debian package of the image. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  /** The SHA-256 of the package file, hex. */
  readonly sha256: string;
  /** The package file. */
  readonly file: string;
}

/**
 * The user and group id of the image. It is numeric for orchestrators that must see that it is not root, and the usual
 * one of images without a shell.
 */
export const USER_ID = 65_532;

/** What nothing in the image reads. */
const OMITTED =
  /^(var\/lock|etc\/update-motd\.d|usr\/share\/(lintian|bug|man|base-files))(\/|$)|^usr\/share\/doc\/.*\/(changelog|NEWS|README)/;

/** The paths whose owner is the image's user; only they can be written. */
const WRITABLE = ['var/lib/latchkey', 'var/lib/latchkey-emulator', 'var/cache/latchkey'];

const FILES = {
  'etc/passwd': `root:x:0:0:root:/root:/nonexistent\nlatchkey:x:${USER_ID}:${USER_ID}:Latchkey:/var/lib/latchkey:/nonexistent\n`,
  'etc/group': `root:x:0:\nlatchkey:x:${USER_ID}:\n`,
  // glibc's default would ask DNS before /etc/hosts.
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

/**
 * The entries of all packages. The packages' status files are where scanners look for them in an image without dpkg.
 * @throws Error if two packages disagree about a path, or a package has another kind of file
 */
export async function debianEntries(packages: readonly DebianPackage[]): Promise<LayerEntry[]> {
  const entries = new Map<string, LayerEntry>();
  const add = (entry: LayerEntry) => {
    const other = entries.get(entry.path);
    if (other === undefined) entries.set(entry.path, entry);
    else if (other.type !== entry.type || entry.type !== 'directory')
      throw new Error(`two packages contain ${entry.path}`);
  };
  for (const one of packages) for (const entry of await filesOf(one)) add(entry);
  const newest = Math.max(...[...entries.values()].map(({ mtime }) => mtime));
  const directory = (path: string, mode = 0o755, owner = 0): LayerEntry => ({
    path,
    type: 'directory',
    mode,
    owner,
    mtime: newest,
  });
  const file = (path: string, content: string | Buffer): LayerEntry => ({
    path,
    type: 'file',
    mode: 0o644,
    mtime: newest,
    content: Buffer.from(content),
  });
  for (const path of ['etc/latchkey', 'var/lib/dpkg', 'var/lib/dpkg/status.d', 'usr/lib/latchkey'])
    add(directory(path));
  for (const path of WRITABLE) add(directory(path, 0o700, USER_ID));
  for (const [path, content] of Object.entries(FILES)) add(file(path, content));
  for (const { name, file: deb } of packages) {
    const status = execFileSync('dpkg-deb', ['--field', deb], { encoding: 'utf8' });
    add(file(`var/lib/dpkg/status.d/${name}`, status.replace('\n', '\nStatus: install ok installed\n')));
    add(file(`var/lib/dpkg/status.d/${name}.md5sums`, await checksumsOf(deb)));
  }
  return [...entries.values()];
}

async function filesOf({ file, sha256, name }: DebianPackage): Promise<LayerEntry[]> {
  const found = createHash('sha256').update(readFileSync(file)).digest('hex');
  if (found !== sha256) throw new Error(`${file} (${name}) has the SHA-256 ${found}, not ${sha256}`);
  const members = await readArchive(execFileSync('dpkg-deb', ['--fsys-tarfile', file], { maxBuffer: 2 ** 28 }));
  return members.flatMap(({ header, content }) => {
    const path = header.name.replace(/^\.\//, '').replace(/\/$/, '');
    return path === '' || path === '.' || OMITTED.test(path) ? [] : [toEntry(path, header, content)];
  });
}

function toEntry(path: string, header: Header, content: Buffer): LayerEntry {
  const { type, mode = 0, uid, gid, mtime, linkname } = header;
  if (type !== 'file' && type !== 'directory' && type !== 'symlink') throw new Error(`${path} is a ${type}`);
  if (uid !== gid) throw new Error(`${path} belongs to ${uid}:${gid}`);
  return {
    path,
    type,
    mode: mode & 0o7777,
    owner: uid ?? 0,
    mtime: (mtime?.getTime() ?? 0) / 1000,
    ...(type === 'file' && { content }),
    ...(type === 'symlink' && linkname && { target: linkname }),
  };
}

/** The package's md5sums, without the files that the image omits. */
async function checksumsOf(deb: string): Promise<string> {
  const members = await readArchive(execFileSync('dpkg-deb', ['--ctrl-tarfile', deb], { maxBuffer: 2 ** 26 }));
  const found = members.find(({ header }) => header.name.replace(/^\.\//, '') === 'md5sums')?.content.toString() ?? '';
  return found.replace(/^.{34}(.*)\n/gm, (line, path: string) => (OMITTED.test(path) ? '' : line));
}

async function readArchive(bytes: Buffer): Promise<{ readonly header: Header; readonly content: Buffer }[]> {
  const members: { header: Header; content: Buffer }[] = [];
  const reader = extract();
  reader.on('entry', (header, stream, next) => {
    void buffer(stream).then((content) => {
      members.push({ header, content });
      next();
    }, next);
  });
  reader.end(bytes);
  await finished(reader);
  return members;
}
