import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Environment } from '../broker/environment.ts';
import type { PortalClock } from '../broker/time/portal-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import { trueTime } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Store } from '../core/store.ts';
import { urlHost } from '../system/addresses.ts';
import type { HubAuthority } from './authority.ts';
import { warnOfCertificate, warnOfLeftOut } from './certificate-warnings.ts';
import { keepLeaf, keptLeaf } from './kept-leaf.ts';
import { watchLeafAge } from './leaf-age.ts';
import { type CertificateFiles, readOwnCertificate } from './own-certificate.ts';
import type { ShownLeaf } from './shown-leaf.ts';

/** What a {@link HubLeaf} is made from. */
export interface LeafContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly portalClock: PortalClock;
  readonly identity: { readonly id: string; readonly ca: HubAuthority };
  /** Where the leaf that the hub issued is kept. */
  readonly store: Pick<Store, 'setting' | 'saveSetting'>;
  /** The hub's own DNS names. */
  readonly names: readonly string[];
  /** The LAN addresses as they are now. */
  addresses(): readonly string[];
  /** The user's own certificate in place of one that the hub issues; null for none. */
  readonly own: { readonly files: CertificateFiles; readonly leaf: ShownLeaf } | null;
}

/** What shows the leaf. */
export interface LeafServer {
  /** @throws Error where certificate and key are not fit for TLS */
  renewLeaf(leaf: ShownLeaf['pem']): void;
  /** Ends all TLS sessions that could be taken up again. */
  rotateTicketKeys(): void;
}

const NO_FAULT = { what: '', told: false };

/** How often it is looked whether the user's own certificate was renewed, in ms. */
const LOOK = 30_000;
/** One that the hub issues is issued anew when it has less than this left, in ms. */
const ISSUED_LEAST = 365 * 86_400_000;
/** Of the user's own is told, once a day, when it has less than this left, in ms. */
const OWN_LEAST = 14 * 86_400_000;
const DAY = 86_400_000;
/** How long the keys of TLS session tickets are in use, in ms. */
const TICKET_KEYS_LIFE = DAY;

/** The certificate that the hub shows on the home network: one that its own CA issued, or the user's own. */
export class HubLeaf {
  readonly #context: LeafContext;
  #shown: ShownLeaf;
  #names: readonly string[];
  #server: LeafServer | null = null;
  #onAnchor: () => void = () => undefined;
  /** What was wrong with the user's files when they were read last. */
  #fault = NO_FAULT;
  #looking = false;
  #renewal: Promise<void> = Promise.resolve();
  /** When the log was told that the user's certificate ends, on the boot clock. */
  #warned = Number.NEGATIVE_INFINITY;

  private constructor(context: LeafContext, shown: ShownLeaf) {
    this.#context = context;
    this.#shown = shown;
    this.#names = namesOf(context, shown);
  }

  static async open(context: LeafContext): Promise<HubLeaf> {
    const { own, environment } = context;
    if (own !== null) warnOfCertificate(own.leaf, environment.clock, environment.log);
    return new HubLeaf(context, own?.leaf ?? (await issue(context)));
  }

  get shown(): ShownLeaf {
    return this.#shown;
  }

  /** The DNS names that the hub answers to. */
  get names(): readonly string[] {
    return this.#names;
  }

  /**
   * What appliances and browsers shall call the hub by, in a URL: its address, or its mDNS name while it has none; where the
   * user's own certificate is not for that, a name that it is for.
   */
  host(address: string | null): string {
    const { own, identity } = this.#context;
    const usual = address ?? `${identity.id}.local`;
    const named = this.#shown.names.find((name) => !name.startsWith('*'));
    const host = own === null || named === undefined || isFor(this.#shown, usual) ? usual : named;
    return urlHost(host);
  }

  /** Calls `changed` whenever the anchor is another one. */
  whenAnchorChanges(changed: () => void): void {
    this.#onAnchor = changed;
  }

  /** Has a server show what is good at the time, from now on. */
  serve(server: LeafServer): void {
    const { scheduler, environment, portalClock, own } = this.#context;
    const { clock } = environment;
    this.#server = server;
    const every = (ms: number, what: string, run: () => void) => {
      const plan = () =>
        scheduler.plan(what, clock.now().uptime + ms, () => {
          run();
          plan();
        });
      plan();
    };
    every(TICKET_KEYS_LIFE, 'the keys of TLS session tickets', () => server.rotateTicketKeys());
    if (own !== null) every(LOOK, 'the files of the certificate', () => void this.#look(own.files));
    watchLeafAge({
      scheduler,
      clock,
      portalClock,
      least: own === null ? ISSUED_LEAST : OWN_LEAST,
      notAfter: () => this.#shown.notAfter,
      onShort: (left) => (own === null ? void this.renew() : this.#warn(left)),
    });
  }

  /**
   * Issues it anew, as for addresses or a CA that has changed. Of the user's own there is nothing to issue. One after the
   * other: an earlier one that took long would bring back what a later one has replaced.
   */
  renew(): Promise<void> {
    this.#renewal = this.#renewal.then(() => this.#renew());
    return this.#renewal;
  }

  async #renew(): Promise<void> {
    const { own, environment } = this.#context;
    if (own !== null) return;
    try {
      this.#show(await issue(this.#context));
    } catch (error) {
      environment.log.error('certificate could not be issued', { error: messageOf(error) });
    }
  }

  /** One look at a time: an earlier one that took long would bring back what a later one has replaced. */
  async #look(files: CertificateFiles): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    await this.#takeOver(files);
    this.#looking = false;
  }

  async #takeOver(files: CertificateFiles): Promise<void> {
    const { clock, log } = this.#context.environment;
    try {
      const found = await readOwnCertificate(files);
      this.#fault = NO_FAULT;
      if (isDeepStrictEqual(found, this.#shown)) return;
      const before = this.#shown.anchor.fingerprint;
      this.#show(found);
      this.#warned = Number.NEGATIVE_INFINITY;
      log.info('certificate renewed', { ends: new Date(found.notAfter).toISOString() });
      warnOfCertificate(found, clock, log);
      const { fingerprint } = found.anchor;
      if (fingerprint === before) return;
      log.warn('certificate has another anchor: appliances must pin it', { fingerprint });
      this.#onAnchor();
    } catch (error) {
      const fault = messageOf(error);
      // At the second look, and once: whoever renews the files may be between one and the other.
      if (fault !== this.#fault.what) this.#fault = { what: fault, told: false };
      else if (!this.#fault.told) {
        this.#fault = { what: fault, told: true };
        log.warn('certificate on disk is no good, the old one stays', { error: fault });
      }
    }
  }

  #warn(left: number): void {
    const { clock, log } = this.#context.environment;
    const now = clock.now().uptime;
    if (now - this.#warned < DAY) return;
    this.#warned = now;
    const ends = new Date(this.#shown.notAfter).toISOString();
    if (left > 0) log.warn('certificate ends soon', { ends, days: Math.floor(left / DAY) });
    else log.error('certificate has expired', { ends });
  }

  #show(shown: ShownLeaf): void {
    this.#server?.renewLeaf(shown.pem);
    this.#shown = shown;
    this.#names = namesOf(this.#context, shown);
  }
}

function isFor({ pem }: ShownLeaf, host: string): boolean {
  const certificate = new X509Certificate(pem.certificate);
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

function namesOf({ names }: LeafContext, shown: ShownLeaf): readonly string[] {
  return [...new Set([...names, ...shown.names])];
}

/** The leaf that was issued before, where another one would say the same: to issue one, much has to be loaded. */
async function issue(context: LeafContext): Promise<ShownLeaf> {
  const { identity, names, addresses, portalClock, environment, store } = context;
  const { authority, fingerprint, old } = identity.ca;
  const wall = environment.clock.now();
  const now = trueTime(portalClock.confirmed, wall) ?? wall.wall;
  const wanted = {
    issuer: fingerprint,
    old: old?.fingerprint ?? null,
    names,
    addresses: [...new Set(['127.0.0.1', '::1', ...addresses()])],
  };
  let leaf = await keptLeaf(store, wanted);
  if (leaf === null || leaf.notAfter - now < ISSUED_LEAST) {
    const { issueLeaf } = await import('../system/x509/issuing.ts');
    const issued = await issueLeaf(authority, { ...wanted, now, ...(old === null ? {} : { through: old.through }) });
    warnOfLeftOut(issued.leftOut, old !== null, environment.log);
    leaf = issued;
    await keepLeaf(store, wanted, leaf).catch((error: unknown) => {
      environment.log.debug('certificate could not be kept: the next start issues another', {
        error: messageOf(error),
      });
    });
  }
  const { certificate, key, notAfter } = leaf;
  const anchor = { certificate: authority.certificate, fingerprint };
  return { pem: { certificate, key }, names, anchor, notAfter };
}
