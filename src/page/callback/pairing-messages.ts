import type { PairedConnection } from '../../core/lan-service.ts';
import { isInstallerInitiated, type Pairing, type PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { CredentialLocation } from '../../core/portals/identity.ts';
import { publicReason } from '../../core/reports/pairing-failure.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import { connectionNote, sentenceAbout } from '../connection-names.ts';
import type { MessagePage } from '../document.ts';
import { portalAgainPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** The message for a pairing that has ended, or that needs no further action by the person. */
export function pairingMessage(pairing: Pairing, paired: PairedConnection, texts: Texts): MessagePage {
  const message = stepMessage(pairing, paired, texts);
  const note = connectionNote(paired, texts);
  return note === '' ? message : { ...message, text: `${note} ${message.text}` };
}

function stepMessage(pairing: Pairing, paired: PairedConnection, allTexts: Texts): MessagePage {
  const { result: texts } = allTexts;
  const { step, lastFailure } = pairing;
  if (step.kind === 'ended') {
    return step.result.kind === 'paired'
      ? {
          severity: 'good',
          heading: sentenceAbout(paired, allTexts, texts.connected),
          text: texts.connectedText,
        }
      : failureMessage(step.result.reason, paired, !isInstallerInitiated(pairing), allTexts);
  }
  const heading = sentenceAbout(paired, allTexts, texts.notConnectedYet);
  const notConnectedYet = { severity: 'bad', heading } as const;
  // A login by redirect cannot be repeated with the same link, and neither can one whose code may have been exchanged.
  const isLinkSpent = lastFailure === 'answer_lost' || pairing.answeredStates !== undefined;
  const failure = loginFailureText(pairing, allTexts);
  if (failure !== null && (step.kind === 'waiting' || (step.kind === 'asking' && isLinkSpent))) {
    const next = isLinkSpent && isInstallerInitiated(pairing) ? texts.useNewLink : texts.reopenLink;
    return { ...notConnectedYet, text: `${failure} ${next}` };
  }
  const connecting = sentenceAbout(paired, allTexts, texts.connecting);
  return { severity: 'waiting', heading: connecting, text: texts.connectingText, reloadAfter: 5 };
}

/**
 * The message for a login that the portal does not confirm. It shows nothing that the page's address does not contain.
 */
export function loginMessage(
  login: 'unconfirmed' | 'too_late',
  paired: PairedConnection,
  allTexts: Texts,
): MessagePage {
  const { result: texts } = allTexts;
  const heading = sentenceAbout(paired, allTexts, texts.notConnectedYet);
  return login === 'unconfirmed'
    ? { severity: 'waiting', heading, text: texts.unconfirmed, reloadAfter: 5 }
    : { severity: 'bad', heading, text: `${texts.unconfirmedTooLate} ${texts.reopenLink}` };
}

/** Why the last login did not lead to a grant, if the person can log in again; null if there was no failure. */
export function loginFailureText(
  { lastFailure }: Pick<Pairing, 'lastFailure'>,
  { result: { loginFailures, reasons } }: Texts,
): string | null {
  if (lastFailure === null) return null;
  if (lastFailure === 'refused_by_user') return reasons.refused_by_user;
  if (lastFailure === 'portal_rejected') return reasons.code_refused;
  return lastFailure === 'answer_lost' ? loginFailures.answer_lost : loginFailures.code_refused;
}

/**
 * What to correct if the portal does not accept the hub's own credentials; empty for other reasons. Only for the
 * installer's pages, because it names files of the hub.
 */
export function credentialsAdvice(
  reason: PairingFailureReason | ProblemCode,
  location: CredentialLocation,
  { states }: Texts,
): string[] {
  const { corrections } = states;
  const { portal, secretFile, appliedBy = 'reload' } = location;
  if (publicReason(reason) !== 'misconfigured') return [];
  if (appliedBy === 'enter_again') return [corrections.enterAgain];
  if (reason === 'misconfigured') return [corrections.credentials(portal, secretFile, corrections.apply[appliedBy])];
  const apply = corrections.apply[appliedBy === 'app_restart' ? appliedBy : 'reload'];
  return [corrections.clientId(portal, apply)];
}

/** The form that corrects the hub's own credentials at a portal; null if they are not corrected on a page. */
export function credentialsForm({ portal, appliedBy }: CredentialLocation): string | null {
  return appliedBy === 'enter_again' ? portalAgainPath(portal) : null;
}

function failureMessage(
  reason: PairingFailureReason,
  paired: PairedConnection,
  byAppliance: boolean,
  allTexts: Texts,
): MessagePage {
  const { result: texts } = allTexts;
  return {
    severity: 'bad',
    heading: sentenceAbout(paired, allTexts, texts.notConnected),
    text: `${texts.reasons[reason]} ${nextStep(reason, byAppliance, texts.nextSteps)}`,
  };
}

/** @param byAppliance whether the appliance, and not the installer, starts a new pairing */
function nextStep(reason: PairingFailureReason, byAppliance: boolean, next: Texts['result']['nextSteps']): string {
  const start = byAppliance ? next.startOnAppliance : next.startAtHub;
  switch (reason) {
    case 'replaced':
      return next.otherLink;
    case 'portal_rejected':
      return `${start} ${next.ifAgain}`;
    case 'foreign_origin':
    case 'misconfigured':
    case 'client_unknown':
      return next.checkConfiguration;
    default:
      return start;
  }
}

/** Reasons for which a new pairing would fail in the same way, or already exists. */
const NOT_FIXED_BY_NEW_PAIRING: readonly PairingFailureReason[] = [
  'replaced',
  'foreign_origin',
  'misconfigured',
  'client_unknown',
];

/** Whether a pairing has failed, and the same login may work in a new one. */
export function isFixedByNewPairing({ step }: Pairing): boolean {
  return (
    step.kind === 'ended' && step.result.kind === 'failed' && !NOT_FIXED_BY_NEW_PAIRING.includes(step.result.reason)
  );
}
