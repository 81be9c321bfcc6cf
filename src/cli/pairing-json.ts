import type { FailureReason } from '../core/pairing.ts';
import type { FreshLinkReason } from '../core/pairing-report.ts';
import { notice, printJson } from './output.ts';
import { outOfReach, unconfirmedLogin } from './pairing-failure.ts';
import type { PairingDisplay, ShownLink } from './pairing-watch.ts';

/** A pairing for programs: one JSON object a line. */
export class JsonDisplay implements PairingDisplay, Disposable {
  readonly #of: { readonly appliance?: string };

  /** @param appliance is named in each line, where one of several is shown */
  constructor(appliance?: string) {
    this.#of = appliance === undefined ? {} : { appliance };
  }

  outOfReach(problem: string, expiresIn: number): void {
    notice(outOfReach(problem, expiresIn));
  }

  link({ authorizeUrl, shortUrl }: ShownLink, expiresIn: number, reason: FreshLinkReason | null): void {
    const short = shortUrl === null ? {} : { short_url: shortUrl };
    const why = reason === null ? {} : { reason };
    printJson({ event: 'waiting', ...this.#of, authorize_url: authorizeUrl, ...short, expires_in: expiresIn, ...why });
  }

  unconfirmed(address: string): void {
    notice(unconfirmedLogin(address));
  }

  paired(scope: string | null): void {
    printJson({ event: 'paired', ...this.#of, scope });
  }

  failed(reason: FailureReason): void {
    printJson({ event: 'failed', ...this.#of, reason });
  }

  [Symbol.dispose](): void {}
}
