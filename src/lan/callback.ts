import type { FastifyInstance } from 'fastify';
import type { Callback, LanService } from '../core/lan-service.ts';
import type { FailureReason, Pairing } from '../core/pairing.ts';
import { Secret } from '../core/secret.ts';
import { type Notice, sendNotice } from './pages.ts';

/** Longer ones are no codes: the portal's are short. */
const LONGEST_CODE = 4096;

/**
 * The portal's redirect lands here (steady request flow). It is plain HTTP: the code in it is worth nothing without
 * the hub's secret, and a browser would warn of the hub's own certificate in the middle of a login.
 */
export function serveCallback(app: FastifyInstance, service: LanService, hubName: string): void {
  app.get<{ Params: { nonce: string } }>('/callback/:nonce', async ({ params, url }, reply) => {
    // Only the first "?" is a delimiter (RFC 3986, 3.4): a code may hold more of them.
    const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
    const callback = read(new URLSearchParams(query));
    if (callback === null) return sendNotice(reply, 400, hubName, MALFORMED);
    const result = await service.receiveCallback(params.nonce, callback);
    if (result === null) return sendNotice(reply, 404, hubName, UNKNOWN);
    const { pairing, appliance } = result;
    if (callback.kind === 'nothing' && pairing.step.kind === 'waiting') return sendNotice(reply, 400, hubName, NO_CODE);
    return sendNotice(reply, 200, hubName, noticeOf(pairing, appliance));
  });
}

function read(query: URLSearchParams): Callback | null {
  const codes = query.getAll('code');
  const errors = query.getAll('error');
  const [code] = codes;
  const [error] = errors;
  if (codes.length + errors.length > 1 || (code ?? '').length > LONGEST_CODE || (error ?? '').length > 256) return null;
  if (code) return { kind: 'code', code: new Secret(code) };
  return error ? { kind: 'error', error } : { kind: 'nothing' };
}

const MALFORMED: Notice = {
  mood: 'bad',
  heading: 'This address is not right',
  text: 'It is not what the portal sends after a login. Open the pairing link once more and log in again.',
};

const NO_CODE: Notice = {
  mood: 'bad',
  heading: 'The login is not finished',
  text: 'The portal sent no code along. Open the pairing link once more and log in.',
};

const UNKNOWN: Notice = {
  mood: 'bad',
  heading: 'This link is no longer in use',
  text: 'The hub knows nothing of this pairing. Start a new one at the hub and open its link.',
};

function noticeOf({ step, setback }: Pairing, appliance: string): Notice {
  if (step.kind === 'ended') {
    return step.result.kind === 'paired'
      ? {
          mood: 'good',
          heading: `${appliance} is connected`,
          text: 'You can close this page. The hub looks after the rest.',
        }
      : {
          mood: 'bad',
          heading: `${appliance} is not connected`,
          text: REASONS[step.result.reason],
          ...(FIRST_SOMETHING_ELSE.includes(step.result.reason) ? {} : { command: `latchkey pair ${appliance}` }),
        };
  }
  if (setback !== null && step.kind === 'waiting') {
    return {
      mood: 'bad',
      heading: `${appliance} is not connected yet`,
      text: 'The portal did not accept this login any more, perhaps because it took too long. Open the pairing link once more and log in again.',
    };
  }
  if (setback === 'answer_lost') {
    return {
      mood: 'bad',
      heading: `${appliance} is not connected yet`,
      text: "The portal's answer was lost on the way. The hub makes a fresh link: open that one and log in once more.",
    };
  }
  return {
    mood: 'waiting',
    heading: `${appliance} is being connected`,
    text: 'The hub waits for the portal. This page looks again by itself.',
    reloadAfter: 5,
  };
}

const REASONS: Readonly<Record<FailureReason, string>> = {
  refused_by_user: 'Access was refused at the portal. If that was a mistake, start a new pairing at the hub.',
  expired: 'The time for this pairing ran out. Start a new one at the hub.',
  replaced: 'A newer pairing was started in its place. Use the link of that one.',
  cancelled: 'The pairing was cancelled at the hub.',
  portal_rejected:
    'The portal rejected the pairing. Start a new one; if that happens again, check the hub’s configuration.',
  foreign_origin: 'The portal named an address that is not its own, so the hub stopped. Check the hub’s configuration.',
  code_refused: 'The portal did not accept the login. Start a new pairing at the hub.',
  answer_lost: 'The portal’s answer was lost on the way. Start a new pairing at the hub.',
  misconfigured: 'The portal does not accept the hub’s own credentials. Check the hub’s configuration.',
};

/** Where a new pairing alone would end as this one did, or is under way already. */
const FIRST_SOMETHING_ELSE: readonly FailureReason[] = ['replaced', 'foreign_origin', 'misconfigured'];
