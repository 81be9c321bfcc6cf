import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A key ring of a maker. Disposing of it deletes it. */
export class MakerKeyRing implements AsyncDisposable {
  /** Where exported keys are written, and GnuPG's home. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<MakerKeyRing> {
    return new MakerKeyRing(await mkdtemp(join(tmpdir(), 'maker-')));
  }

  /** Runs a shell command in its folder, with this key ring. */
  async sh(command: string): Promise<string> {
    const env = { ...process.env, GNUPGHOME: this.folder };
    return (await run('sh', ['-ec', command], { cwd: this.folder, env })).stdout;
  }

  /**
   * Creates a key. @param options of gpg @param passphrase of the key; none by default
   * @returns the file with the exported secret key; `.public` is appended for that with the public one
   */
  async create(
    name: string,
    { passphrase = '', options = '', algorithm = 'ed25519', validity = 'never' } = {},
  ): Promise<string> {
    const gpg = `gpg --batch --quiet --pinentry-mode loopback --passphrase '${passphrase}'`;
    await this.sh(`${gpg} ${options} --quick-generate-key ${name} ${algorithm} sign ${validity}`);
    const file = join(this.folder, `${name}.asc`);
    await writeFile(file, await this.sh(`${gpg} --armor --export-secret-keys =${name}`), { mode: 0o600 });
    await writeFile(`${file}.public`, await this.sh(`${gpg} --armor --export =${name}`));
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sh('gpgconf --kill all');
    await rm(this.folder, { recursive: true, force: true });
  }
}
