import { constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { access, utimes, writeFile } from 'node:fs/promises';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';

export const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';
const UNSHARE = '/usr/bin/unshare';
const SYNCHRONIZED = 'run/systemd/timesync/synchronized';
/** The machine's uptime when the daemon starts at boot, in ms. */
const UPTIME_AT_START = 20_000;
/** How often the boot clock is updated, in ms. */
const TICK = 50;

/** Why clocks cannot be faked on this machine, or null if they can. */
export async function clocksSkipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'a mount namespace needs root';
  for (const file of [FAKETIME, UNSHARE]) {
    if (await access(file, constants.R_OK).catch(() => true)) return `${file} is missing`;
  }
  return null;
}

/**
 * Fake clocks for a daemon: the wall clock (libfaketime), the boot clock (`/proc/uptime`), the boot id, and the state
 * of systemd-timesyncd. The rest of the machine, including the portal, keeps the right time.
 */
export class FakeMachineClocks implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'latchkey-clocks-'));
  readonly #uptime: number;
  readonly #ticking: NodeJS.Timeout;
  #boots = 0;
  /** The offset of the boot clock from the real one, in ms. */
  #slept = 0;
  /** The offset of the wall clock from the right time, in ms. */
  #ahead = 0;

  constructor() {
    mkdirSync(join(this.#directory, 'run/systemd/timesync'), { recursive: true });
    this.#uptime = openSync(join(this.#directory, 'uptime'), 'w+');
    this.#tick();
    this.#ticking = setInterval(() => this.#tick(), TICK);
    this.setOffset(0);
    this.reboot();
  }

  /** A command that runs the daemon with these clocks: see `HubProcessOptions`. */
  get within(): readonly string[] {
    const script = [
      `mount --bind ${this.#directory}/uptime /proc/uptime`,
      `mount --bind ${this.#directory}/run /run`,
      `exec env LATCHKEY_BOOT_ID=$(cat ${this.#directory}/boot) LD_PRELOAD=${FAKETIME} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_TIMESTAMP_FILE=${this.#directory}/wall "$@"`,
    ];
    return [UNSHARE, '--mount', 'sh', '-c', script.join(' && '), 'sh'];
  }

  /** The time of the wall clock, in ms since 1970. */
  get wall(): number {
    return Date.now() + this.#ahead;
  }

  /** Sets the wall clock's offset from the right time, in ms. */
  setOffset(ahead: number): void {
    this.#ahead = ahead;
    writeFileSync(join(this.#directory, 'wall'), `${ahead < 0 ? '-' : '+'}${Math.abs(ahead) / 1000}\n`);
  }

  /** Simulates a suspension: timers do not run during it, and the wall clock is right afterwards. */
  suspend(ms: number): void {
    this.#slept += ms;
    this.#tick();
    this.setOffset(this.#ahead + ms);
  }

  /** The next start of the daemon is in another boot. */
  reboot(): void {
    this.#boots += 1;
    this.#slept = UPTIME_AT_START - 1000 * uptime();
    this.#tick();
    rmSync(join(this.#directory, SYNCHRONIZED), { force: true });
    writeFileSync(join(this.#directory, 'boot'), String(this.#boots).padStart(32, '0'));
  }

  /** Simulates that systemd-timesyncd has set the clock. */
  async synchronize(): Promise<void> {
    const file = join(this.#directory, SYNCHRONIZED);
    await writeFile(file, '');
    await utimes(file, new Date(), new Date(this.wall));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#ticking);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Overwrites the file in place with a text of constant length, so that nobody reads a partial one. */
  #tick(): void {
    const seconds = uptime() + this.#slept / 1000;
    writeSync(this.#uptime, `${seconds.toFixed(2).padStart(14, '0')} 0.00\n`, 0);
  }
}
