import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { cleanCommit, recordLastRun } from '../../../scripts/test.d/last-run.ts';
import { type CommandResult, root, runCommand, temporaryFolder } from '../../project/checkout.ts';
import { machinePath, olderNode, quickNpm, shellEnvironment, writeProgram } from '../../project/quick-npm.ts';
import { scaleDeadline } from '../../support/deadlines.ts';

/** The version that the clone can release. */
export const VERSION = '99.2.0';
/** The heading of its changes. */
export const SECTION = `## [${VERSION}] - 2026-11-26`;
/** Builds a package without files for each architecture. */
const BUILD_DEB = `umask 022; export SOURCE_DATE_EPOCH=0
for cpu in amd64 arm64; do
  tree=$(mktemp -d); mkdir "$tree/DEBIAN"
  printf "Package: latchkey\\nVersion: ${VERSION}\\nArchitecture: $cpu\\nMaintainer: x\\nDescription: x\\n" >"$tree/DEBIAN/control"
  chmod 755 "$tree"; find "$tree" -exec touch -d @0 {} +
  dpkg-deb --root-owner-group --build "$tree" "$2/latchkey_${VERSION}_$cpu.deb"; rm -r "$tree"
done`;
/** The body of the script that builds the emulator's package. */
export const BUILD_EMULATOR = 'echo emulator >"$2/latchkey-emulator.tgz"';
/** Stand-ins for scripts of the clone: the real ones have tests of their own. */
const STAND_INS: Readonly<Record<string, string>> = {
  'build-deb': BUILD_DEB,
  'build-emulator-package': BUILD_EMULATOR,
  'test-packages': '',
};
/** Scripts that a release may lack. */
const ABSENT = ['build-image', 'build-home-assistant'];

/**
 * A clone of this checkout with a version commit that can be released. `./scripts/release` and `./scripts/test` are the
 * real ones, with stand-ins for what builds packages, and for the programs that test and check, because the suite can't
 * run inside itself. Disposing deletes it.
 */
export class ReleaseClone implements Disposable {
  readonly path: string;
  /** The folder for temporary files of everything that runs in the clone. */
  readonly temporary: string;
  readonly #folder: Disposable;
  readonly #env: NodeJS.ProcessEnv;
  /** The commit that can be released. */
  releasable = '';

  private constructor() {
    // Below this checkout, so that packages can be linked.
    const folder = temporaryFolder(join(root, '.cache'));
    this.#folder = folder;
    this.path = join(folder.path, 'a clone');
    this.temporary = join(folder.path, 'tmp');
    for (const path of [this.path, this.temporary]) mkdirSync(path);
    const bin = olderNode(folder.path);
    quickNpm(bin);
    this.#env = { ...shellEnvironment, PATH: [bin, ...machinePath].join(':'), TMPDIR: this.temporary };
  }

  static async make(): Promise<ReleaseClone> {
    const clone = new ReleaseClone();
    await clone.run('git', ['clone', '--quiet', root, '.']);
    for (const script of ABSENT) rmSync(join(clone.path, 'scripts', script));
    for (const [script, body] of Object.entries(STAND_INS)) clone.replaceScript(script, body);
    // So that no mistake runs the tests of the clone.
    for (const file of globSync(join(clone.path, 'test/**/*.test.ts'))) rmSync(file);
    await clone.run('npm', ['version', VERSION, '--no-git-tag-version']);
    clone.change('CHANGELOG.md', (text) => text.replace(/^## \[/m, `${SECTION}\n\n- A change.\n\n## [`));
    clone.releasable = await clone.commit();
    // The Node.js of the clone brings another npm, which would download the packages.
    const link = `install_packages() { cp -al '${root}/node_modules' .; }`;
    await clone.run('bash', ['-c', `source scripts/setup; ${link}; set_up_packages`]);
    for (const tool of ['biome', 'knip']) clone.#replaceTool(tool, 'exit 0');
    // What this checkout has built.
    clone.#replaceTool('tsc', `[ -e dist ] || cp -a '${root}/dist' .`);
    await clone.run(join(clone.path, 'scripts/setup'));
    clone.makeSuite('fail');
    return clone;
  }

  /** Runs a command in the clone that must succeed. @returns its stdout */
  async run(command: string, args: readonly string[] = []): Promise<string> {
    const options = { cwd: this.path, env: this.#env, timeout: scaleDeadline(120_000) };
    const { status, stdout, stderr } = await runCommand(command, args, options);
    expect(status, `${command} ${args.join(' ')}: ${stdout}${stderr}`).toBe(0);
    return stdout.trim();
  }

  /** Runs `./scripts/release`. */
  release(args: readonly string[]): Promise<CommandResult> {
    const options = { cwd: this.path, env: this.#env, timeout: scaleDeadline(120_000) };
    return runCommand(join(this.path, 'scripts/release'), args, options);
  }

  /** Changes a file. */
  change(file: string, edit: (text: string) => string): void {
    const path = join(this.path, file);
    writeFileSync(path, edit(readFileSync(path, 'utf8')));
  }

  /** Replaces a script by a short one; it finds the output folder in `$2`. */
  replaceScript(name: string, body: string): void {
    writeProgram(join(this.path, 'scripts', name), body);
  }

  /** Makes the tests of the clone's suite pass or fail. */
  makeSuite(result: 'pass' | 'fail'): void {
    const failed = result === 'pass' ? '' : '{"name":"test/core/some.test.ts > some","reason":"it failed"}';
    this.#replaceTool('vitest', `echo '{"passed":7,"failed":[${failed}],"skipped":[]}' >"$LATCHKEY_TEST_REPORT"`);
  }

  /** Commits everything. @returns the commit */
  async commit(): Promise<string> {
    await this.run('git', ['add', '--all']);
    const author = ['-c', 'user.name=Test', '-c', 'user.email=test@example.invalid'];
    await this.run('git', [...author, 'commit', '--quiet', '--message', 'Change']);
    return this.run('git', ['rev-parse', 'HEAD']);
  }

  /** Records that the suite has passed on the commit, as `./scripts/test --all` does. */
  recordPassed(): void {
    const result = '7 passed, 0 failed, 0 skipped';
    recordLastRun(this.path, { commit: cleanCommit(this.path) ?? '', date: '2026-01-31', result, wall: 1, cpu: 1 });
  }

  /** Makes all files and tags as they were at first. */
  async restore(): Promise<void> {
    await this.run('git', ['reset', '--quiet', '--hard', this.releasable]);
    await this.run('git', ['clean', '--quiet', '--force', '-d']);
    for (const tag of (await this.run('git', ['tag', '--list', 'v99.*'])).split('\n')) {
      if (tag !== '') await this.run('git', ['tag', '--delete', tag]);
    }
  }

  /** Replaces a program of the clone's packages, which are linked to those of this checkout. */
  #replaceTool(name: string, body: string): void {
    const path = join(this.path, 'node_modules/.bin', name);
    rmSync(path);
    writeProgram(path, body);
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}
