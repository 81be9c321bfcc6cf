import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import { confirmedTimeAt } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { urlHost } from '../system/addresses.ts';
import {
  type CertificateFiles,
  readCustomCertificate,
  type ServedCertificate,
  warnAboutCertificate,
} from './custom-certificate.ts';
import { type IssuedLeafContext, loadOrIssueLeaf, RENEW_BEFORE_EXPIRY } from './issued-leaf.ts';

/** What a {@link HubLeaf} is made from. */
export interface LeafContext extends IssuedLeafContext {
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly portalClock: ReferenceClock;
  readonly identity: IssuedLeafContext['identity'] & { readonly id: string };
  /** The user's own certificate in place of one that the hub issues; null for none. */
  readonly custom: { readonly files: CertificateFiles; readonly leaf: ServedCertificate } | null;
}

/** What shows the leaf. */
export interface TlsServer {
  /**
   * Ends all TLS sessions that could be taken up again, too.
   * @throws Error where certificate and key are not fit for TLS
   */
  renewLeaf(leaf: ServedCertificate['pem']): void;
}

const NO_PROBLEM = { what: '', told: false };

/** How often the age of the leaf is looked at, in ms. */
const EXPIRY_CHECK_INTERVAL = 60_000;
/** How often it is looked whether the user's own certificate was renewed, in ms. */
const FILE_CHECK_INTERVAL = 30_000;
/** The log says once a day that the user's own has less than this left, in ms. */
const WARN_BEFORE_EXPIRY = 14 * 86_400_000;
const DAY_MS = 86_400_000;
/** How long the keys of TLS session tickets are in use, in ms. */
const TICKET_KEY_LIFETIME = DAY_MS;

/** The certificate that the hub shows on the home network: one that its own CA issued, or the user's own. */
export class HubLeaf {
  readonly #context: LeafContext;
  #current: ServedCertificate;
  #names: readonly string[];
  #server: TlsServer | null = null;
  #anchorListener: () => void = () => undefined;
  /** What was wrong with the user's files when they were read last. */
  #fileProblem = NO_PROBLEM;
  #renewal: Promise<void> = Promise.resolve();
  /** When the log was told that the user's certificate ends, on the boot clock. */
  #lastWarningAt = Number.NEGATIVE_INFINITY;

  private constructor(context: LeafContext, current: ServedCertificate) {
    this.#context = context;
    this.#current = current;
    this.#names = servedNames(context, current);
  }

  static async open(context: LeafContext): Promise<HubLeaf> {
    const { custom: own, environment } = context;
    if (own !== null) warnAboutCertificate(own.leaf, environment.clock, environment.log);
    return new HubLeaf(context, own?.leaf ?? (await loadOrIssueLeaf(context)));
  }

  get current(): ServedCertificate {
    return this.#current;
  }

  /** The DNS names that the hub answers to. */
  get names(): readonly string[] {
    return this.#names;
  }

  /**
   * What appliances and browsers shall call the hub by, in a URL: its address, or its mDNS name while it has none; where the
   * user's own certificate is not for that, a name that it is for.
   */
  urlHostFor(address: string | null): string {
    const { custom: own, identity } = this.#context;
    const usual = address ?? `${identity.id}.local`;
    const named = this.#current.names.find((name) => !name.startsWith('*'));
    const host = own === null || named === undefined || isValidFor(this.#current, usual) ? usual : named;
    return urlHost(host);
  }

  /** Calls `changed` whenever the anchor is another one. */
  onAnchorChange(changed: () => void): void {
    this.#anchorListener = changed;
  }

  /** Has a server show what is good at the time, from now on. */
  keepCurrent(server: TlsServer): void {
    const { scheduler, environment, portalClock, custom: own } = this.#context;
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
    const look = () => this.#checkExpiry();
    every(TICKET_KEY_LIFETIME, 'the keys of TLS session tickets', () => server.renewLeaf(this.#current.pem));
    if (own !== null)
      every(FILE_CHECK_INTERVAL, 'the files of the certificate', () => this.#reloadCustomCertificate(own.files));
    every(EXPIRY_CHECK_INTERVAL, 'the age of the leaf', look);
    portalClock.whenConfirmed(look);
    look();
  }

  /**
   * Issues it anew, as for addresses or a CA that has changed. Of the user's own there is nothing to issue. One after the
   * other: an earlier one that took long would bring back what a later one has replaced.
   */
  reissue(): Promise<void> {
    this.#renewal = this.#renewal.then(() => this.#reissue());
    return this.#renewal;
  }

  async #reissue(): Promise<void> {
    const { custom: own, environment } = this.#context;
    if (own !== null) return;
    try {
      this.#setCurrent(await loadOrIssueLeaf(this.#context));
    } catch (error) {
      environment.log.error('certificate_issue_failed', { error: messageOf(error) });
    }
  }

  async #reloadCustomCertificate(files: CertificateFiles): Promise<void> {
    const { clock, log } = this.#context.environment;
    try {
      const found = await readCustomCertificate(files);
      this.#fileProblem = NO_PROBLEM;
      if (isDeepStrictEqual(found, this.#current)) return;
      const before = this.#current.anchor.fingerprint;
      this.#setCurrent(found);
      this.#lastWarningAt = Number.NEGATIVE_INFINITY;
      log.info('certificate_renewed', { expires_at: new Date(found.notAfter).toISOString() });
      warnAboutCertificate(found, clock, log);
      const { fingerprint } = found.anchor;
      if (fingerprint === before) return;
      log.warn('certificate_anchor_changed', { fingerprint });
      this.#anchorListener();
    } catch (error) {
      const fault = messageOf(error);
      // At the second look, and once: the files may be renewed one after the other.
      if (fault !== this.#fileProblem.what) this.#fileProblem = { what: fault, told: false };
      else if (!this.#fileProblem.told) {
        this.#fileProblem = { what: fault, told: true };
        log.warn('certificate_rejected', { error: fault });
      }
    }
  }

  /** A leaf's age says nothing by a clock that may be wrong: a hub may be born with one, and run for years. */
  #checkExpiry(): void {
    const { custom: own, portalClock, environment } = this.#context;
    const time = confirmedTimeAt(portalClock.confirmed, environment.clock.now());
    if (time === null) return;
    const left = this.#current.notAfter - time;
    if (own === null) {
      if (left < RENEW_BEFORE_EXPIRY) void this.reissue();
    } else if (left < WARN_BEFORE_EXPIRY) this.#warnAboutExpiry(left);
  }

  #warnAboutExpiry(left: number): void {
    const { clock, log } = this.#context.environment;
    const now = clock.now().uptime;
    if (now - this.#lastWarningAt < DAY_MS) return;
    this.#lastWarningAt = now;
    const expires_at = new Date(this.#current.notAfter).toISOString();
    if (left > 0) log.warn('certificate_expiring', { expires_at, days_left: Math.floor(left / DAY_MS) });
    else log.error('certificate_expired', { expires_at, clock_confirmed: true });
  }

  #setCurrent(shown: ServedCertificate): void {
    this.#server?.renewLeaf(shown.pem);
    this.#current = shown;
    this.#names = servedNames(this.#context, shown);
  }
}

function isValidFor({ pem }: ServedCertificate, host: string): boolean {
  const certificate = new X509Certificate(pem.certificate);
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

function servedNames({ names }: LeafContext, shown: ServedCertificate): readonly string[] {
  return [...new Set([...names, ...shown.names])];
}
