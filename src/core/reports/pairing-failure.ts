import type { Instant } from '../clock.ts';
import { type Pairing, type PairingFailureReason, timeLeft } from '../pairings/pairing.ts';
import { applyInstruction, type CredentialLocation, describeCredentials } from '../portal.ts';

/** For how long people are told why a pairing failed, in ms. */
const DISPLAY_DURATION = 86_400_000;

/** What a person corrects in the configuration, or in a file that it names. */
const CONFIGURATION_REASONS: readonly PairingFailureReason[] = [
  'portal_rejected',
  'foreign_origin',
  'misconfigured',
  'client_unknown',
];

/** What a person did, or left undone: nothing is wrong with the hub, the portal or what is between them. */
const USER_REASONS: readonly PairingFailureReason[] = ['refused_by_user', 'expired', 'replaced', 'cancelled'];

/** Whether a pairing has failed because a person wanted it so, or did not log in. */
export function isUserCaused(reason: PairingFailureReason): boolean {
  return USER_REASONS.includes(reason);
}

/**
 * Why a pairing has failed, and when, for as long as people are to see that; null otherwise. What the configuration was to blame for
 * may be mended since the hub was started with it anew, and nobody knows before the next pairing.
 * @param started when the hub was started or reloaded, on the boot clock of `now`, in ms
 */
export function recentPairingFailure(
  { step, failed }: Pairing,
  now: Instant,
  started: number,
): { reason: PairingFailureReason; at: Instant } | null {
  if (step.kind !== 'ended' || step.result.kind !== 'failed' || failed === undefined) return null;
  const { reason } = step.result;
  const isOfThisRun = failed.boot === now.boot && failed.uptime >= started;
  if (!isOfThisRun && CONFIGURATION_REASONS.includes(reason)) return null;
  const isShown = timeLeft({ begun: failed, lifetime: DISPLAY_DURATION }, now) > 0;
  return isShown ? { reason, at: failed } : null;
}

/** Whether it was a device flow that nobody opened, and that is over. */
export function isUnopenedDeviceFlow({ step, failed }: Pairing): boolean {
  return step.kind === 'ended' && step.result.kind === 'failed' && failed === undefined;
}

/**
 * A failure's reason as JSON has it: there, a client_id that the portal does not know is one of the ways in which the hub is
 * misconfigured, and the message says which.
 */
export function publicReason<Reason extends string>(reason: Reason): Reason | 'misconfigured' {
  return reason === 'client_unknown' ? 'misconfigured' : reason;
}

/** Why an appliance was not paired, and what to do next: each as what follows a colon or a semicolon. */
interface PairingFailureText {
  readonly cause: string;
  readonly advice: string;
}

/**
 * What a failed pairing means to people.
 * @param appliance its name
 * @param credentialLocation where the hub's credentials at the portal are corrected
 */
export function explainPairingFailure(
  reason: PairingFailureReason,
  appliance: string,
  credentialLocation: CredentialLocation,
): PairingFailureText {
  const again = `"latchkey pair ${appliance}"`;
  switch (reason) {
    case 'refused_by_user':
      return { cause: 'the access was refused at the login', advice: `run ${again} again and allow it` };
    case 'expired':
      return { cause: 'nobody logged in before the pairing expired', advice: `run ${again} again` };
    case 'replaced':
      return {
        cause: 'another pairing of it was started since',
        advice: `log in with that one's link, which "latchkey status" shows`,
      };
    case 'cancelled':
      return { cause: 'the pairing was cancelled', advice: `run ${again} to start anew` };
    case 'portal_rejected':
      return {
        cause: "the portal rejected the hub's request",
        advice: `check the portal's base_url and scope, see the hub's log, and run ${again} again`,
      };
    case 'foreign_origin':
      return {
        cause: 'the portal named addresses that are not its own, so the hub sent it nothing',
        advice: 'check base_url and frontend_url in the configuration',
      };
    case 'code_refused':
      return { cause: 'the portal refused the authorization code of the login', advice: `run ${again} again` };
    case 'answer_lost':
      return { cause: "the portal's answer was lost on the way", advice: `check the network and run ${again} again` };
    case 'misconfigured':
      return {
        cause: "the portal does not accept the hub's client_id and client secret",
        advice: `correct ${describeCredentials(credentialLocation, 'or')}, ${applyInstruction(credentialLocation)} and then run ${again} again`,
      };
    case 'client_unknown':
      return {
        cause: 'the portal does not know this client_id',
        advice: `correct portals.${credentialLocation.portal}.client_id in the configuration, run "latchkey reload" and then ${again} again`,
      };
  }
}
