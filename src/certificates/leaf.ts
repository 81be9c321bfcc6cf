import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import type { HubProblem } from '../core/administration.ts';
import { confirmedTimeAt, DAY, rfc3339, rfc3339Day } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { urlHost } from '../system/addresses.ts';
import { SerialQueue } from '../system/serial-queue.ts';
import { expiryWarningTime } from '../system/x509/certificates.ts';
import {
  type CertificateFiles,
  readCustomCertificate,
  type ServedCertificate,
  warnAboutCertificate,
} from './custom-certificate.ts';
import { type IssuedLeafContext, loadOrIssueLeaf, RENEW_BEFORE_EXPIRY } from './issued-leaf.ts';

/** What a {@link HubLeaf} needs. */
interface LeafContext extends IssuedLeafContext {
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly portalClock: ReferenceClock;
  readonly identity: IssuedLeafContext['identity'] & { readonly id: string };
  /** The owner's own certificate, used instead of one that the hub issues; null for none. */
  readonly custom: { readonly files: CertificateFiles; readonly leaf: ServedCertificate } | null;
}

/** A server that presents the leaf. */
interface TlsServer {
  /**
   * Replaces the leaf, and invalidates all TLS sessions that could be resumed.
   * @throws Error if certificate and key can't be used for TLS
   */
  renewLeaf(leaf: ServedCertificate['pem']): void;
}

const NO_PROBLEM = { message: '', isLogged: false };

/** How often the expiry of the leaf is checked, in ms. */
const EXPIRY_CHECK_INTERVAL = 60_000;
/** How often the files of the owner's own certificate are read again, in ms. */
const FILE_CHECK_INTERVAL = 30_000;
/** How long the key of TLS session tickets is used, in ms. */
const TICKET_KEY_LIFETIME = DAY;

/** The certificate that the hub presents on the LAN: one that its own CA issued, or the owner's own. */
export class HubLeaf {
  readonly #context: LeafContext;
  #current: ServedCertificate;
  #names: readonly string[];
  #server: TlsServer | null = null;
  #anchorListener: () => void = () => undefined;
  /** What was wrong with the owner's files when they were last read. */
  #fileProblem = NO_PROBLEM;
  readonly #renewals = new SerialQueue();
  /** When the expiry of the owner's certificate was last logged, in ms on the boot clock. */
  #lastWarningAt = Number.NEGATIVE_INFINITY;

  private constructor(context: LeafContext, current: ServedCertificate) {
    this.#context = context;
    this.#current = current;
    this.#names = servedNames(context, current);
  }

  /** Loads the owner's own certificate from the context, or else one of the hub's CA. */
  static async open(context: LeafContext): Promise<HubLeaf> {
    const { custom: own, environment } = context;
    if (own !== null) warnAboutCertificate(own.leaf, environment.clock, environment.log);
    return new HubLeaf(context, own?.leaf ?? (await loadOrIssueLeaf(context, false)));
  }

  get current(): ServedCertificate {
    return this.#current;
  }

  /** The DNS names under which the hub can be requested. */
  get names(): readonly string[] {
    return this.#names;
  }

  /**
   * The host for URLs that appliances and browsers use: the hub's address, or its mDNS name while it has no address. If
   * the owner's own certificate does not cover that, a name that it covers.
   */
  urlHostFor(address: string | null): string {
    const { custom: own, identity } = this.#context;
    const usual = address ?? `${identity.id}.local`;
    const named = this.#current.names.find((name) => !name.startsWith('*'));
    const host = own === null || named === undefined || isValidFor(this.#current, usual) ? usual : named;
    return urlHost(host);
  }

  /**
   * The problem that the owner's own certificate has expired, or should have been renewed by now; null if there is none.
   * The time comes from the confirmed clock alone, as in the log.
   */
  get expiryProblem(): HubProblem | null {
    const { custom: own, portalClock, environment } = this.#context;
    const time = confirmedTimeAt(portalClock.confirmed, environment.clock.now());
    if (own === null || time === null) return null;
    const { notAfter, names } = this.#current;
    const certificate = names.length === 0 ? "The hub's certificate" : `The hub's certificate for ${names[0]}`;
    if (time >= notAfter) {
      const message = `${certificate} expired on ${rfc3339Day(notAfter)}, so browsers and appliances reject it`;
      return { code: 'certificate_expired', message, since: rfc3339(notAfter) };
    }
    const warningTime = expiryWarningTime(this.#current);
    if (time < warningTime) return null;
    const message = `${certificate} expires on ${rfc3339Day(notAfter)} and has not been renewed`;
    return { code: 'certificate_expiring', message, since: rfc3339(warningTime) };
  }

  /** Calls `changed` whenever the anchor has changed. */
  onAnchorChange(changed: () => void): void {
    this.#anchorListener = changed;
  }

  /** From now on keeps the leaf of a server current. */
  keepCurrent(server: TlsServer): void {
    const { scheduler, environment, portalClock, custom: own } = this.#context;
    this.#server = server;
    const every = (ms: number, what: string, run: () => void | Promise<void>) => {
      const plan = () =>
        scheduler.plan(what, environment.clock.now().uptime + ms, () => {
          const running = run();
          // One run at a time: a slow earlier run would bring back what a later one has replaced.
          if (running === undefined) plan();
          else void running.then(plan);
        });
      plan();
    };
    const check = () => this.#checkExpiry();
    every(TICKET_KEY_LIFETIME, 'the keys of TLS session tickets', () => server.renewLeaf(this.#current.pem));
    if (own !== null)
      every(FILE_CHECK_INTERVAL, 'the files of the certificate', () => this.#reloadCustomCertificate(own.files));
    every(EXPIRY_CHECK_INTERVAL, 'the age of the leaf', check);
    portalClock.whenConfirmed(check);
    check();
  }

  /**
   * Issues a new leaf after the addresses or the CA have changed; does nothing for the owner's own certificate. One run
   * at a time: a slow earlier run would bring back what a later one has replaced.
   */
  reissue(): Promise<void> {
    return this.#renewals.run(() => this.#reissue());
  }

  async #reissue(): Promise<void> {
    const { custom: own, environment } = this.#context;
    if (own !== null) return;
    try {
      this.#setCurrent(await loadOrIssueLeaf(this.#context, true));
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
      const message = messageOf(error);
      // Logged once, at the second check: the two files may be replaced one after the other.
      if (message !== this.#fileProblem.message) this.#fileProblem = { message, isLogged: false };
      else if (!this.#fileProblem.isLogged) {
        this.#fileProblem = { message, isLogged: true };
        log.warn('certificate_rejected', { error: message });
      }
    }
  }

  /** Checks by the confirmed clock alone: the machine's clock may be wrong from its first start on, and for years. */
  #checkExpiry(): void {
    const { custom: own, portalClock, environment } = this.#context;
    const time = confirmedTimeAt(portalClock.confirmed, environment.clock.now());
    if (time === null) return;
    const left = this.#current.notAfter - time;
    if (own === null) {
      if (left < RENEW_BEFORE_EXPIRY) void this.reissue();
    } else if (time >= expiryWarningTime(this.#current)) this.#warnAboutExpiry(left);
  }

  #warnAboutExpiry(left: number): void {
    const { clock, log } = this.#context.environment;
    const now = clock.now().uptime;
    if (now - this.#lastWarningAt < DAY) return;
    this.#lastWarningAt = now;
    const expires_at = new Date(this.#current.notAfter).toISOString();
    if (left > 0) log.warn('certificate_expiring', { expires_at, days_left: Math.floor(left / DAY) });
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
