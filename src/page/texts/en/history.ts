import type { FailureReason } from '../../../core/pairings/pairing.ts';
import type { ProblemCode } from '../../../core/reports/problem.ts';

/** What has happened to an appliance. */
export const history = {
  heading: 'History',
  nothing: 'Nothing has happened yet.',
  older: 'Older entries',
  days: 'The last 14 days',
  connected: 'Connected',
  failing: 'Held up for a time',
  needsPairing: 'A login was needed',
  unknown: 'Not connected, or nothing known',
  /** For who can't see the picture: how many days each. */
  summary: (connected: number, failing: number, needsPairing: number) =>
    `The last 14 days: connected on ${connected}, held up on ${failing}, in need of a login on ${needsPairing}.`,
  kinds: {
    paired: 'Connected by a login',
    pairing_failed: 'A login came to nothing',
    unpaired: 'Disconnected',
    refreshed: 'Refreshed',
    refresh_failed: 'Could not be refreshed',
    token_refused: 'The cloud turned its access down, the appliance says',
  },
  times: (count: number) => (count === 1 ? '' : `${count} times`),
  why: {
    refused_by_user: 'access was refused at the portal',
    expired: 'the time for it ran out',
    replaced: 'a newer one was started in its place',
    cancelled: 'it was cancelled',
    foreign_origin: 'the portal named an address that is not its own',
    code_refused: 'the portal did not accept it',
    portal_unreachable: 'the portal could not be reached',
    portal_deferred: 'the portal asked for patience',
    portal_rejected: 'the portal turned the hub away',
    answer_lost: 'an answer was lost on the way',
    misconfigured: 'the portal did not accept the hub’s own credentials',
    clock_unknown: 'the hub did not know the time',
    store_unwritable: 'the hub could not save it',
    refused: 'the portal has ended the access',
  } satisfies Readonly<Record<FailureReason | ProblemCode, string>>,
};
