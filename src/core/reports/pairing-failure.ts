import type { Instant } from '../clock.ts';
import { type Pairing, type PairingFailureReason, timeLeft } from '../pairings/pairing.ts';
import {
  type CredentialLocation,
  clientIdApplyMethod,
  describeClientId,
  describeCredentials,
  howToApplyCorrection,
} from '../portals/identity.ts';

/** How long surfaces show why a pairing failed, in ms. */
const DISPLAY_DURATION = 86_400_000;

/** A person corrects these in the configuration, or in a file that it names. */
const CONFIGURATION_REASONS: readonly PairingFailureReason[] = [
  'portal_rejected',
  'foreign_origin',
  'misconfigured',
  'client_unknown',
];

/** A person did something, or did not log in: nothing is wrong with the hub, the portal or the network. */
const USER_REASONS: readonly PairingFailureReason[] = ['refused_by_user', 'expired', 'replaced', 'cancelled'];

/** Whether a pairing failed because a person ended it or did not log in. */
export function isUserCaused(reason: PairingFailureReason): boolean {
  return USER_REASONS.includes(reason);
}

/**
 * Why and when a pairing failed, for a day; null otherwise, also if somebody cancelled it. A failure that the
 * configuration caused is shown only until the next start or reload: the cause may have been corrected, and only the
 * next pairing can tell.
 * @param started when the hub was started or reloaded, on the boot clock of `now`, in ms
 */
export function recentPairingFailure(
  { step, failed, failureDetail: detail }: Pairing,
  now: Instant,
  started: number,
): { reason: PairingFailureReason; at: Instant; detail?: string } | null {
  if (step.kind !== 'ended' || step.result.kind !== 'failed' || failed === undefined) return null;
  const { reason } = step.result;
  if (reason === 'cancelled') return null;
  const isFromThisRun = failed.boot === now.boot && failed.uptime >= started;
  if (!isFromThisRun && CONFIGURATION_REASONS.includes(reason)) return null;
  const isShown = timeLeft({ begun: failed, lifetime: DISPLAY_DURATION }, now) > 0;
  return isShown ? { reason, at: failed, ...(detail !== undefined && { detail }) } : null;
}

/** Whether a pairing is an ended device flow whose link nobody opened. */
export function isUnopenedDeviceFlow({ step, failed }: Pairing): boolean {
  return step.kind === 'ended' && step.result.kind === 'failed' && failed === undefined;
}

/**
 * A failure's reason in JSON output: there, an unknown client_id is `misconfigured`, and the message says what is
 * wrong.
 */
export function publicReason<Reason extends string>(reason: Reason): Reason | 'misconfigured' {
  return reason === 'client_unknown' ? 'misconfigured' : reason;
}

/** Why an appliance was not paired, and what to do next; each text follows a colon or a semicolon. */
interface PairingFailureText {
  readonly cause: string;
  readonly advice: string;
}

/**
 * Explains a failed pairing to people.
 * @param appliance its name
 * @param credentialLocation where a person corrects the hub's credentials for the portal
 * @param detail what the portal said, and what to correct; left out if that is not known
 */
export function explainPairingFailure(
  reason: PairingFailureReason,
  appliance: string,
  credentialLocation: CredentialLocation,
  detail?: string,
): PairingFailureText {
  const said = detail === undefined ? '' : `: ${detail}`;
  const again = `"latchkey pair ${appliance}"`;
  switch (reason) {
    case 'refused_by_user':
      return { cause: 'the access was refused at the login', advice: `run ${again} again and allow it` };
    case 'expired':
      return { cause: 'nobody logged in before the pairing expired', advice: `run ${again} again` };
    case 'replaced':
      return {
        cause: 'a newer pairing of it was started',
        advice: `log in with the link of the newer pairing, which "latchkey status" shows`,
      };
    case 'cancelled':
      return { cause: 'the pairing was cancelled', advice: `run ${again} to start again` };
    case 'portal_rejected':
      return {
        cause: `the portal rejected the hub's request${said}`,
        advice: `${whatToCorrect(appliance, detail)}, and run ${again} again`,
      };
    case 'foreign_origin':
      return {
        cause: `the portal returned addresses that are not its own, so the hub did not use them${said}`,
        advice: 'check base_url and frontend_url in the configuration',
      };
    case 'code_refused':
      return { cause: `the portal refused the authorization code of the login${said}`, advice: `run ${again} again` };
    case 'answer_lost':
      return { cause: "the portal's answer was lost", advice: `check the network and run ${again} again` };
    case 'misconfigured':
      return {
        cause: detail ?? "the portal does not accept the hub's client_id and client secret",
        advice: `correct ${describeCredentials(credentialLocation, 'or')}, ${howToApplyCorrection(credentialLocation)} and then run ${again} again`,
      };
    case 'client_unknown':
      return {
        cause: 'the portal does not know this client_id',
        advice: `correct ${describeClientId(credentialLocation)}, ${howToApplyCorrection({ appliedBy: clientIdApplyMethod(credentialLocation) })} and then run ${again} again`,
      };
  }
}

/** What a person corrects after a rejection. @param detail as above */
function whatToCorrect(appliance: string, detail: string | undefined): string {
  if (detail === undefined) return "check the portal's addresses and the scope in the configuration, see the hub's log";
  if (detail.includes('invalid_scope')) return `correct the scope of ${appliance} to one that the portal knows`;
  return 'correct what this names';
}
