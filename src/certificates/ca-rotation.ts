import type { Environment } from '../broker/environment.ts';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import type { CaStatus } from '../core/administration.ts';
import { confirmedTimeAt, MAX_TIMER_DELAY, rfc3339 } from '../core/clock.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { PermittedNames } from '../system/x509/certificates.ts';
import type { HubAuthority } from './authority.ts';
import type { TrustAnchor } from './custom-certificate.ts';

export interface CaRotationContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  readonly scheduler: Pick<Scheduler, 'plan'>;
  /** Knows the true time, where something has told it: a clock that may be wrong ends nothing. */
  readonly portalClock: Pick<ReferenceClock, 'confirmed' | 'whenConfirmed'>;
  readonly ca: HubAuthority;
  /** Whether the hub shows the user's own certificate, so that its own CA is not in use. */
  readonly hasCustomCertificate: boolean;
  /** The certificate that appliances pin, as it is now. */
  anchor(): TrustAnchor;
  /** What a new CA may issue certificates for. */
  permittedNames(): PermittedNames;
  /** Has the hub serve what follows from another CA, or from the end of an old one. */
  reissueLeaf(): Promise<void>;
  /** Called when there is another CA: it is to be announced, and to be in the daily copy of the store. */
  onRotated(): void;
}

const OLD_CA_TASK = "the end of the old CA's time";
/** The old CA is kept for so long at most, in s. */
const MAX_KEEP_SECONDS = 365 * 86_400;

/** Puts another CA in the place of the hub's, and ends the time in which the old one leads to the hub as well. */
export class CaRotation {
  readonly #context: CaRotationContext;

  constructor(context: CaRotationContext) {
    this.#context = context;
    context.portalClock.whenConfirmed(() => void this.#checkOldExpiry());
    this.#scheduleExpiryCheck();
  }

  /** The certificate that appliances pin, and during a rotation the one before. */
  report(): CaStatus {
    const { anchor, ca, hasCustomCertificate: hasOwnCertificate } = this.#context;
    const { certificate, fingerprint } = anchor();
    const { old } = ca;
    if (old === null || hasOwnCertificate) return { certificate, fingerprint };
    const until = old.servedUntil === null ? null : rfc3339(old.servedUntil);
    return { certificate, fingerprint, old: { certificate: old.certificate, fingerprint: old.fingerprint, until } };
  }

  /**
   * Makes another CA.
   * @param keep for how many seconds appliances that trust no other than the old one are served
   * @throws Failure `not_allowed`, `store_unwritable`; nothing has changed then
   */
  async rotate(keep: number): Promise<CaStatus> {
    const { ca, permittedNames: permitted, environment, portalClock, onRotated } = this.#context;
    this.#checkAllowed(keep);
    const before = ca.fingerprint;
    await ca.rotate(keep * 1000, permitted(), environment.clock.now(), portalClock.confirmed);
    await this.#applyChange();
    onRotated();
    const report = this.report();
    const { fingerprint } = report;
    environment.log.warn('ca_rotated', { fingerprint, old_fingerprint: before, old_until: report.old?.until });
    return report;
  }

  /**
   * Says anew for how many seconds, from now on, the old CA is kept.
   * @throws Failure `not_allowed`, `store_unwritable`; nothing has changed then
   */
  async setOldServingTime(keep: number): Promise<CaStatus> {
    const { ca, environment, portalClock } = this.#context;
    this.#checkAllowed(keep);
    await ca.setOldServingTime(keep * 1000, environment.clock.now(), portalClock.confirmed);
    await this.#applyChange();
    if (keep === 0) environment.log.warn('old_ca_removed', { by: 'request' });
    return this.report();
  }

  /** @throws Failure `not_allowed` */
  #checkAllowed(keep: number): void {
    if (this.#context.hasCustomCertificate) {
      throw new Failure(
        'not_allowed',
        'the hub shows the certificate of lan.certificate_file, and appliances trust the last certificate in that file: replace the file to change it; the CA of the hub itself is not in use and was not changed',
      );
    }
    if (keep >= 0 && keep <= MAX_KEEP_SECONDS) return;
    throw new Failure(
      'not_allowed',
      `${keep} s is not allowed: keep the old CA for 0 to ${MAX_KEEP_SECONDS} seconds (365 d)`,
    );
  }

  async #applyChange(): Promise<void> {
    await this.#context.reissueLeaf();
    this.#scheduleExpiryCheck();
  }

  /** Looks at the time again when the old CA's is over, and once a minute at least. */
  #scheduleExpiryCheck(): void {
    const { scheduler, environment, portalClock, ca } = this.#context;
    const now = environment.clock.now();
    const time = confirmedTimeAt(portalClock.confirmed, now);
    const until = ca.old?.servedUntil ?? null;
    const left = time === null || until === null ? MAX_TIMER_DELAY : Math.max(0, until - time);
    // Never at once again: a store that can't be written would be tried without a pause.
    const delay = Math.min(MAX_TIMER_DELAY, Math.max(1000, left));
    scheduler.plan(OLD_CA_TASK, now.uptime + delay, () => void this.#checkOldExpiry());
  }

  async #checkOldExpiry(): Promise<void> {
    const { ca, environment, portalClock, reissueLeaf: renewLeaf } = this.#context;
    try {
      if (await ca.retireOldIfDue(portalClock.confirmed, environment.clock.now())) {
        await renewLeaf();
        environment.log.warn('old_ca_removed', { by: 'time' });
      }
    } catch (error) {
      environment.log.debug('old_ca_removal_failed', { error: messageOf(error) });
    }
    this.#scheduleExpiryCheck();
  }
}
