import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { scrapeMetrics } from '../metrics/scrape.ts';
import type { HubProcess, LoginPortal } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';

/** The user of the portal with whom the installer pairs appliances. */
export const INSTALLER_USER = 'installer';
/** The names of the appliances that the installer adds and removes begin with this. */
export const GUEST = 'guest-';

/** For how long the old CA is served: longer than the soak, because the appliances trust only that one. */
const OLD_CA_SECONDS = 30 * 86_400;
const LIVE_MS = 2500;
/** Done only once, because the hub serves only one old CA. */
const ROTATE_CA = 'rotate CA';

/**
 * Does what an installer does, one step after the other, again and again. Under faults of the portal a step may fail.
 */
export class SoakInstaller implements AsyncDisposable {
  readonly #hub: HubProcess;
  readonly #portal: LoginPortal;
  readonly #succeeded = new Map<string, number>();
  readonly #stop = new AbortController();
  readonly #work: Promise<void>;
  /** Whether the hub may be unreachable, because it is being reloaded. */
  isReloading = false;
  #rounds = 0;

  /** @param pause between two steps, in ms */
  constructor(hub: HubProcess, portal: LoginPortal, pause: number) {
    this.#hub = hub;
    this.#portal = portal;
    this.#work = this.#run(pause);
  }

  /** Whether every step was tried. */
  get hasTriedAll(): boolean {
    return this.#rounds > 0;
  }

  /** The steps that have succeeded, and how often: `pair 3, backup 3`. */
  get summary(): string {
    return Object.keys(this.#steps)
      .map((name) => `${name} ${this.#succeeded.get(name) ?? 0}`)
      .join(', ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  readonly #steps: Readonly<Record<string, () => Promise<unknown>>> = {
    add: () => this.#hub.addAppliance(this.#guest, 'Monitoring'),
    pair: () => this.#hub.pair(this.#guest, this.#portal, INSTALLER_USER),
    page: () => this.#visitPages(),
    metrics: async () => scrapeMetrics((await this.#hub.status()).hub.metrics_port),
    status: () => this.#hub.json('status'),
    secret: () => this.#hub.ask((control) => control.request('rotateSecret', { name: this.#guest })),
    refresh: () => this.#hub.ask((control) => control.request('refresh', { name: this.#guest })),
    remove: () => this.#hub.ask((control) => control.request('removeAppliance', { name: this.#guest })),
    backup: () => this.#hub.ask((control) => control.request('backUp', { passphrase: 'correct horse battery staple' })),
    doctor: () => this.#doctor(),
    reload: () => this.#reload(),
    [ROTATE_CA]: () => this.#hub.ask((control) => control.request('rotateAuthority', { keep: OLD_CA_SECONDS })),
  };

  get #guest(): string {
    return `${GUEST}${this.#rounds}`;
  }

  async #run(pause: number): Promise<void> {
    const { signal } = this.#stop;
    for (; !signal.aborted; this.#rounds++) {
      for (const [name, step] of Object.entries(this.#steps)) {
        if (name === ROTATE_CA && this.#rounds > 0) continue;
        await sleep(pause, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
        const isDone = await step().then(
          () => true,
          () => false,
        );
        if (isDone) this.#succeeded.set(name, (this.#succeeded.get(name) ?? 0) + 1);
      }
    }
  }

  async #visitPages(): Promise<void> {
    await using visitor = await PageVisitor.signedIn(this.#hub);
    for (const path of ['/', `/appliances/${this.#guest}`, `/appliances/${this.#guest}/label`, '/appliances/add']) {
      const { status } = await visitor.get(path);
      if (status !== 200) throw new Error(`${path}: HTTP ${status}`);
    }
    // An open page that is told about changes; the stream has no end.
    void visitor.get('/live').catch(() => undefined);
    await sleep(LIVE_MS);
  }

  async #doctor(): Promise<void> {
    const bundle = join(this.#hub.directory, 'bundle.tar.gz');
    // Its checks of this machine may fail; the archive is written nevertheless.
    await this.#hub.cli('doctor', '--bundle', bundle);
    await rm(bundle);
  }

  async #reload(): Promise<void> {
    this.isReloading = true;
    try {
      await this.#hub.reload();
    } finally {
      this.isReloading = false;
    }
  }
}
