import { isInstallerInitiated, type Pairing, type PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { CredentialLocation } from '../../core/portal.ts';
import type { ProblemCode } from '../../core/reports/problem.ts';
import type { MessagePage } from '../document.ts';
import type { Texts } from '../texts/en.ts';

/** What a person is told of a pairing that has ended, or goes on without them. */
export function pairingMessage(pairing: Pairing, appliance: string, { result: texts }: Texts): MessagePage {
  const { step, lastFailure } = pairing;
  if (step.kind === 'ended') {
    return step.result.kind === 'paired'
      ? { severity: 'good', heading: texts.connected(appliance), text: texts.connectedText }
      : failureMessage(step.result.reason, appliance, !isInstallerInitiated(pairing), texts);
  }
  const notYet = { severity: 'bad', heading: texts.notConnectedYet(appliance) } as const;
  if (lastFailure !== null && step.kind === 'waiting') {
    return { ...notYet, text: `${texts.loginFailures.code_refused} ${texts.reopenLink}` };
  }
  if (lastFailure === 'answer_lost' && step.kind === 'asking') {
    const next = isInstallerInitiated(pairing) ? texts.useNewLink : texts.reopenLink;
    return { ...notYet, text: `${texts.loginFailures.answer_lost} ${next}` };
  }
  return { severity: 'waiting', heading: texts.connecting(appliance), text: texts.connectingText, reloadAfter: 5 };
}

/** What a person is told whose login the portal does not tell of. It says nothing of the pairing that the address does not. */
export function loginMessage(
  login: 'unconfirmed' | 'too_late',
  appliance: string,
  { result: texts }: Texts,
): MessagePage {
  const heading = texts.notConnectedYet(appliance);
  return login === 'unconfirmed'
    ? { severity: 'waiting', heading, text: texts.unconfirmed, reloadAfter: 5 }
    : { severity: 'bad', heading, text: `${texts.unconfirmedTooLate} ${texts.reopenLink}` };
}

/** What came between a person's login and the grant, for one who may log in once more; null where nothing did. */
export function loginFailureText(
  { lastFailure }: Pick<Pairing, 'lastFailure'>,
  { result: { loginFailures: setbacks } }: Texts,
): string | null {
  if (lastFailure === null) return null;
  return lastFailure === 'answer_lost' ? setbacks.answer_lost : setbacks.code_refused;
}

/**
 * What an installer has to correct where the portal does not take the hub's own credentials; nothing where it is not that. Nobody
 * else is told: it names files of the hub.
 */
export function credentialsAdvice(
  reason: PairingFailureReason | ProblemCode,
  { portal, secretFile, appliedBy = 'reload' }: CredentialLocation,
  { states }: Texts,
): string[] {
  const { corrections: correct } = states;
  if (reason === 'client_unknown') return [correct.clientId(portal)];
  return reason === 'misconfigured' ? [correct.credentials(portal, secretFile, correct.apply[appliedBy])] : [];
}

function failureMessage(
  reason: PairingFailureReason,
  appliance: string,
  byAppliance: boolean,
  texts: Texts['result'],
): MessagePage {
  const text = `${texts.reasons[reason]} ${nextStep(reason, byAppliance, texts.nextSteps)}`;
  const command =
    byAppliance || NOT_FIXED_BY_NEW_PAIRING.includes(reason) ? {} : { command: `latchkey pair ${appliance}` };
  return { severity: 'bad', heading: texts.notConnected(appliance), text, ...command };
}

/** @param byAppliance whether a new pairing is the appliance's to start */
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

/** Where a new pairing alone would end as this one did, or is under way already. */
const NOT_FIXED_BY_NEW_PAIRING: readonly PairingFailureReason[] = [
  'replaced',
  'foreign_origin',
  'misconfigured',
  'client_unknown',
];
