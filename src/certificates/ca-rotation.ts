import type { Environment } from '../broker/ports.ts';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import type { Scheduler } from '../broker/time/scheduler.ts';
import type { CaStatus } from '../core/administration.ts';
import { confirmedTimeAt, MAX_TIMER_DELAY, rfc3339 } from '../core/clock.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { PermittedNames } from '../system/x509/certificates.ts';
import type { HubAuthority } from './authority.ts';
import type { TrustAnchor } from './custom-certificate.ts';

interface CaRotationContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  readonly scheduler: Pick<Scheduler, 'plan'>;
  /** The confirmed clock: nothing ends by a clock that may be wrong. */
  readonly portalClock: Pick<ReferenceClock, 'confirmed' | 'readings' | 'whenConfirmed'>;
  readonly ca: HubAuthority;
  /** Whether the hub uses the owner's own certificate, so that its own CA is not in use. */
  readonly hasCustomCertificate: boolean;
  /** The certificate that appliances pin now. */
  anchor(): TrustAnchor;
  /** The names and networks that a new CA may issue certificates for. */
  permittedNames(): PermittedNames;
  /** Issues a new leaf after the CA was replaced or an old one has ended. */
  reissueLeaf(): Promise<void>;
  /** Called after a rotation: the new CA must be announced and be part of the store's snapshot. */
  onRotated(): void;
}

const OLD_CA_TASK = "the end of the old CA's time";
/** The longest time that the old CA can be kept, in seconds. */
const MAX_KEEP_SECONDS = 365 * 86_400;

/** Replaces the hub's CA, and stops serving the old one when its time is over. */
export class CaRotation {
  readonly #context: CaRotationContext;

  constructor(context: CaRotationContext) {
    this.#context = context;
    context.portalClock.whenConfirmed(() => void this.#checkOldExpiry());
    this.#scheduleExpiryCheck();
  }

  /** The certificate that appliances pin and, during a rotation, the old one. */
  report(): CaStatus {
    const { anchor, ca, hasCustomCertificate } = this.#context;
    const { certificate, fingerprint } = anchor();
    const { old } = ca;
    if (old === null || hasCustomCertificate) return { certificate, fingerprint };
    const until = old.servedUntil === null ? null : rfc3339(old.servedUntil);
    return { certificate, fingerprint, old: { certificate: old.certificate, fingerprint: old.fingerprint, until } };
  }

  /**
   * Replaces the CA with a new one.
   * @param keep for how many seconds appliances that trust only the old CA are served
   * @throws Failure `not_allowed`, `store_unwritable`; nothing has changed then
   */
  async rotate(keep: number): Promise<CaStatus> {
    const { ca, permittedNames: permitted, environment, portalClock, onRotated } = this.#context;
    this.#checkAllowed(keep);
    const before = ca.fingerprint;
    await ca.rotate(keep * 1000, permitted(), environment.clock.now(), portalClock.readings);
    await this.#applyChange();
    onRotated();
    const report = this.report();
    const { fingerprint } = report;
    environment.log.warn('ca_rotated', { fingerprint, old_fingerprint: before, old_until: report.old?.until });
    return report;
  }

  /**
   * Sets how long the old CA is kept.
   * @param keep seconds from now; 0 ends it
   * @throws Failure `not_allowed`, `store_unwritable`; nothing has changed then
   */
  async setOldServingTime(keep: number): Promise<CaStatus> {
    const { ca, environment, portalClock } = this.#context;
    this.#checkAllowed(keep);
    await ca.setOldServingTime(keep * 1000, environment.clock.now(), portalClock.readings);
    await this.#applyChange();
    if (keep === 0) environment.log.warn('old_ca_removed', { by: 'request' });
    return this.report();
  }

  /** @throws Failure `not_allowed` */
  #checkAllowed(keep: number): void {
    if (this.#context.hasCustomCertificate) {
      throw new Failure(
        'not_allowed',
        'the hub uses the certificate of lan.certificate_file, and appliances trust the last certificate in that file: replace the file to change it; the CA of the hub itself is not in use and was not changed',
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

  /** Plans the next check for the end of the old CA, and at least once a minute. */
  #scheduleExpiryCheck(): void {
    const { scheduler, environment, portalClock, ca } = this.#context;
    const now = environment.clock.now();
    const time = confirmedTimeAt(portalClock.confirmed, now);
    const until = ca.old?.servedUntil ?? null;
    const left = time === null || until === null ? MAX_TIMER_DELAY : Math.max(0, until - time);
    // At least 1 s, so that an unwritable store is not tried in a busy loop.
    const delay = Math.min(MAX_TIMER_DELAY, Math.max(1000, left));
    scheduler.plan(OLD_CA_TASK, now.uptime + delay, () => void this.#checkOldExpiry());
  }

  async #checkOldExpiry(): Promise<void> {
    const { ca, environment, portalClock, reissueLeaf } = this.#context;
    try {
      if (await ca.retireOldIfDue(portalClock.readings, environment.clock.now())) {
        await reissueLeaf();
        environment.log.warn('old_ca_removed', { by: 'time' });
      }
    } catch (error) {
      environment.log.debug('old_ca_removal_failed', { error: messageOf(error) });
    }
    this.#scheduleExpiryCheck();
  }
}
