import { byInstaller, type FailureReason, type Pairing } from '../core/pairing.ts';
import type { Notice } from './document.ts';

/** What a person is told of a pairing that has ended, or goes on without them. */
export function pairingNotice(pairing: Pairing, appliance: string): Notice {
  const { step, setback } = pairing;
  if (step.kind === 'ended') {
    return step.result.kind === 'paired'
      ? {
          mood: 'good',
          heading: `${appliance} is connected`,
          text: 'You can close this page. The hub looks after the rest.',
        }
      : failed(step.result.reason, appliance, !byInstaller(pairing));
  }
  if (setback !== null && step.kind === 'waiting') {
    return {
      mood: 'bad',
      heading: `${appliance} is not connected yet`,
      text: `${REFUSED} Open the pairing link once more and log in again.`,
    };
  }
  if (setback === 'answer_lost' && step.kind === 'asking') {
    const next = byInstaller(pairing)
      ? 'The hub makes a fresh link: open that one and log in once more.'
      : 'Open the pairing link once more and log in again.';
    return { mood: 'bad', heading: `${appliance} is not connected yet`, text: `${LOST} ${next}` };
  }
  return {
    mood: 'waiting',
    heading: `${appliance} is being connected`,
    text: 'The hub waits for the portal. This page looks again by itself.',
    reloadAfter: 5,
  };
}

/** What came between a person's login and the grant, for one who may log in once more; null where nothing did. */
export function setbackText({ setback }: Pairing): string | null {
  if (setback === null) return null;
  return setback === 'answer_lost' ? LOST : REFUSED;
}

const REFUSED = 'The portal did not accept this login any more, perhaps because it took too long.';
const LOST = 'The portal’s answer was lost on the way.';

function failed(reason: FailureReason, appliance: string, byAppliance: boolean): Notice {
  const pairing = byAppliance ? 'the pairing once more on the appliance' : 'a new pairing at the hub';
  const text = `${REASONS[reason]} ${nextStep(reason, pairing)}`;
  const command = byAppliance || FIRST_SOMETHING_ELSE.includes(reason) ? {} : { command: `latchkey pair ${appliance}` };
  return { mood: 'bad', heading: `${appliance} is not connected`, text, ...command };
}

const REASONS: Readonly<Record<FailureReason, string>> = {
  refused_by_user: 'Access was refused at the portal.',
  expired: 'The time for this pairing ran out.',
  replaced: 'A newer pairing was started in its place.',
  cancelled: 'The pairing was cancelled at the hub.',
  portal_rejected: 'The portal rejected the pairing.',
  foreign_origin: 'The portal named an address that is not its own, so the hub stopped.',
  code_refused: 'The portal did not accept the login.',
  answer_lost: LOST,
  misconfigured: 'The portal does not accept the hub’s own credentials.',
};

/** @param pairing what to start where a new one is the way */
function nextStep(reason: FailureReason, pairing: string): string {
  switch (reason) {
    case 'refused_by_user':
      return `If that was a mistake, start ${pairing}.`;
    case 'replaced':
      return 'Use the link of that one.';
    case 'portal_rejected':
      return `Start ${pairing}; if that happens again, check the hub’s configuration.`;
    case 'foreign_origin':
    case 'misconfigured':
      return 'Check the hub’s configuration.';
    default:
      return `Start ${pairing}.`;
  }
}

/** Where a new pairing alone would end as this one did, or is under way already. */
const FIRST_SOMETHING_ELSE: readonly FailureReason[] = ['replaced', 'foreign_origin', 'misconfigured'];
