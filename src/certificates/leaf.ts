import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { PortalClock } from '../broker/time/portal-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import { trueTime } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { urlHost } from '../system/addresses.ts';
import { ISSUED_MIN_REMAINING, type IssuedLeafContext, issuedLeaf } from './issued-leaf.ts';
import {
  type CertificateFiles,
  readOwnCertificate,
  type ServedCertificate,
  warnOfCertificate,
} from './own-certificate.ts';

/** What a {@link HubLeaf} is made from. */
export interface LeafContext extends IssuedLeafContext {
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly portalClock: PortalClock;
  readonly identity: IssuedLeafContext['identity'] & { readonly id: string };
  /** The user's own certificate in place of one that the hub issues; null for none. */
  readonly own: { readonly files: CertificateFiles; readonly leaf: ServedCertificate } | null;
}

/** What shows the leaf. */
export interface LeafServer {
  /**
   * Ends all TLS sessions that could be taken up again, too.
   * @throws Error where certificate and key are not fit for TLS
   */
  renewLeaf(leaf: ServedCertificate['pem']): void;
}

const NO_FAULT = { what: '', told: false };

/** How often the age of the leaf is looked at, in ms. */
const AGE_INTERVAL = 60_000;
/** How often it is looked whether the user's own certificate was renewed, in ms. */
const LOOK = 30_000;
/** The log says once a day that the user's own has less than this left, in ms. */
const OWN_MIN_REMAINING = 14 * 86_400_000;
const DAY = 86_400_000;
/** How long the keys of TLS session tickets are in use, in ms. */
const TICKET_KEYS_LIFE = DAY;

/** The certificate that the hub shows on the home network: one that its own CA issued, or the user's own. */
export class HubLeaf {
  readonly #context: LeafContext;
  #shown: ServedCertificate;
  #names: readonly string[];
  #server: LeafServer | null = null;
  #onAnchor: () => void = () => undefined;
  /** What was wrong with the user's files when they were read last. */
  #fault = NO_FAULT;
  #renewal: Promise<void> = Promise.resolve();
  /** When the log was told that the user's certificate ends, on the boot clock. */
  #warned = Number.NEGATIVE_INFINITY;

  private constructor(context: LeafContext, shown: ServedCertificate) {
    this.#context = context;
    this.#shown = shown;
    this.#names = namesOf(context, shown);
  }

  static async open(context: LeafContext): Promise<HubLeaf> {
    const { own, environment } = context;
    if (own !== null) warnOfCertificate(own.leaf, environment.clock, environment.log);
    return new HubLeaf(context, own?.leaf ?? (await issuedLeaf(context)));
  }

  get shown(): ServedCertificate {
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
    this.#server = server;
    const every = (ms: number, what: string, run: () => void | Promise<void>) => {
      const plan = () =>
        scheduler.plan(what, environment.clock.now().uptime + ms, () => {
          const running = run();
          // One at a time: an earlier one that took long would bring back what a later one has replaced.
          if (running === undefined) plan();
          else void running.then(plan);
        });
      plan();
    };
    const look = () => this.#lookAtAge();
    every(TICKET_KEYS_LIFE, 'the keys of TLS session tickets', () => server.renewLeaf(this.#shown.pem));
    if (own !== null) every(LOOK, 'the files of the certificate', () => this.#takeOver(own.files));
    every(AGE_INTERVAL, 'the age of the leaf', look);
    portalClock.whenConfirmed(look);
    look();
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
      this.#show(await issuedLeaf(this.#context));
    } catch (error) {
      environment.log.error('certificate_issue_failed', { error: messageOf(error) });
    }
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
      log.info('certificate_renewed', { expires_at: new Date(found.notAfter).toISOString() });
      warnOfCertificate(found, clock, log);
      const { fingerprint } = found.anchor;
      if (fingerprint === before) return;
      log.warn('certificate_anchor_changed', { fingerprint });
      this.#onAnchor();
    } catch (error) {
      const fault = messageOf(error);
      // At the second look, and once: the files may be renewed one after the other.
      if (fault !== this.#fault.what) this.#fault = { what: fault, told: false };
      else if (!this.#fault.told) {
        this.#fault = { what: fault, told: true };
        log.warn('certificate_rejected', { error: fault });
      }
    }
  }

  /** A leaf's age says nothing by a clock that may be wrong: a hub may be born with one, and run for years. */
  #lookAtAge(): void {
    const { own, portalClock, environment } = this.#context;
    const time = trueTime(portalClock.confirmed, environment.clock.now());
    if (time === null) return;
    const left = this.#shown.notAfter - time;
    if (own === null) {
      if (left < ISSUED_MIN_REMAINING) void this.renew();
    } else if (left < OWN_MIN_REMAINING) this.#warn(left);
  }

  #warn(left: number): void {
    const { clock, log } = this.#context.environment;
    const now = clock.now().uptime;
    if (now - this.#warned < DAY) return;
    this.#warned = now;
    const expires_at = new Date(this.#shown.notAfter).toISOString();
    if (left > 0) log.warn('certificate_expiring', { expires_at, days_left: Math.floor(left / DAY) });
    else log.error('certificate_expired', { expires_at, clock_confirmed: true });
  }

  #show(shown: ServedCertificate): void {
    this.#server?.renewLeaf(shown.pem);
    this.#shown = shown;
    this.#names = namesOf(this.#context, shown);
  }
}

function isFor({ pem }: ServedCertificate, host: string): boolean {
  const certificate = new X509Certificate(pem.certificate);
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

function namesOf({ names }: LeafContext, shown: ServedCertificate): readonly string[] {
  return [...new Set([...names, ...shown.names])];
}
