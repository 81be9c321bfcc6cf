import { constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { access, utimes, writeFile } from 'node:fs/promises';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';
const UNSHARE = '/usr/bin/unshare';
const SYNCHRONIZED = 'run/systemd/timesync/synchronized';
/** How long the machine is up when a daemon is started at boot, in ms. */
const YOUNG = 20_000;
/** How often the boot clock is moved on, in ms. */
const TICK = 50;

/** Says why no clocks can be moved here, or null where they can. */
export async function clocksSkipReason(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'a mount namespace needs root';
  for (const file of [FAKETIME, UNSHARE]) {
    if (await access(file, constants.R_OK).catch(() => true)) return `${file} is missing`;
  }
  return null;
}

/**
 * What a daemon takes for its machine's clocks: the wall clock (libfaketime), the boot clock (`/proc/uptime`), the boot's
 * id, and what systemd-timesyncd says. The rest of the machine, and the portal with it, keep the right time.
 */
export class FakeMachineClocks implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'latchkey-clocks-'));
  readonly #uptime: number;
  readonly #ticking: NodeJS.Timeout;
  #boots = 0;
  /** Milliseconds that the boot clock is ahead of the real one, or behind it. */
  #slept = 0;
  /** Milliseconds that the wall clock is ahead of the right time. */
  #ahead = 0;

  constructor() {
    mkdirSync(join(this.#directory, 'run/systemd/timesync'), { recursive: true });
    this.#uptime = openSync(join(this.#directory, 'uptime'), 'w+');
    this.#tick();
    this.#ticking = setInterval(() => this.#tick(), TICK);
    this.setOffset(0);
    this.reboot();
  }

  /** Runs the daemon on these clocks: see `HubProcessOptions`. */
  get within(): readonly string[] {
    const script = [
      `mount --bind ${this.#directory}/uptime /proc/uptime`,
      `mount --bind ${this.#directory}/run /run`,
      `exec env LATCHKEY_BOOT_ID=$(cat ${this.#directory}/boot) LD_PRELOAD=${FAKETIME} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_TIMESTAMP_FILE=${this.#directory}/wall "$@"`,
    ];
    return [UNSHARE, '--mount', 'sh', '-c', script.join(' && '), 'sh'];
  }

  /** What the wall clock says now, in ms since 1970. */
  get wall(): number {
    return Date.now() + this.#ahead;
  }

  /** Sets the wall clock so many ms ahead of the right time, or behind it. */
  setOffset(ahead: number): void {
    this.#ahead = ahead;
    writeFileSync(join(this.#directory, 'wall'), `${ahead < 0 ? '-' : '+'}${Math.abs(ahead) / 1000}\n`);
  }

  /** The machine was suspended for so many ms: timers stood still meanwhile. The wall clock is right afterwards. */
  suspend(ms: number): void {
    this.#slept += ms;
    this.#tick();
    this.setOffset(this.#ahead + ms);
  }

  /** The daemon that is started next finds itself in another boot. */
  reboot(): void {
    this.#boots += 1;
    this.#slept = YOUNG - 1000 * uptime();
    this.#tick();
    rmSync(join(this.#directory, SYNCHRONIZED), { force: true });
    writeFileSync(join(this.#directory, 'boot'), String(this.#boots).padStart(32, '0'));
  }

  /** systemd-timesyncd says that it has set the clock. */
  async synchronize(): Promise<void> {
    const file = join(this.#directory, SYNCHRONIZED);
    await writeFile(file, '');
    await utimes(file, new Date(), new Date(this.wall));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#ticking);
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** In place, and always of one length, so that nobody reads half of it. */
  #tick(): void {
    const seconds = uptime() + this.#slept / 1000;
    writeSync(this.#uptime, `${seconds.toFixed(2).padStart(14, '0')} 0.00\n`, 0);
  }
}
