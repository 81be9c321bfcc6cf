import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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
/** What the scripts of a release build in addition; their own tests cover it. */
const OTHER_SCRIPTS = ['build-emulator-package', 'build-image', 'build-home-assistant'];
/** The body of a script of a release that builds a file, always with the same bytes. */
export const BUILD_SAME = 'echo same >"$2/latchkey-emulator.tgz"';

/**
 * A clone of this checkout with a version commit that can be released. `./scripts/test` is the real one, but with
 * stand-ins for the programs that test and check, because the suite can't run inside itself. Disposing deletes it.
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
    for (const script of OTHER_SCRIPTS) rmSync(join(clone.path, 'scripts', script), { force: true });
    clone.replaceScript('build-emulator-package', BUILD_SAME);
    // Packages of both architectures would take twice as long.
    renameSync(join(clone.path, 'scripts/build-deb'), join(clone.path, 'scripts/build-any-deb'));
    clone.replaceScript('build-deb', 'exec "$(dirname "$0")/build-any-deb" --arch "$(dpkg --print-architecture)" "$@"');
    // So that no mistake runs the tests of the clone.
    for (const file of globSync(join(clone.path, 'test/**/*.test.ts'))) rmSync(file);
    await clone.run('npm', ['version', VERSION, '--no-git-tag-version']);
    clone.change('CHANGELOG.md', (text) => text.replace(/^## \[/m, `${SECTION}\n\n- A change.\n\n## [`));
    clone.releasable = await clone.commit();
    await clone.run(join(clone.path, 'scripts/setup'));
    for (const tool of ['biome', 'knip', 'tsc']) clone.#replaceTool(tool, 'exit 0');
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

  /** Runs `./scripts/release`, with quick packages. @param path a folder with programs before the machine's own */
  release(args: readonly string[], path?: string): Promise<CommandResult> {
    const env = path === undefined ? this.#env : { ...this.#env, PATH: `${path}:${this.#env['PATH']}` };
    const options = { cwd: this.path, env, timeout: scaleDeadline(120_000) };
    return runCommand(join(this.path, 'scripts/release'), [...args, '--level', 'none'], options);
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

  /** The same, and records that the suite has passed on the commit, as `./scripts/test --all` does. */
  async commitPassed(): Promise<void> {
    await this.commit();
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
