import { Judgement } from './judgement.ts';
import type { Flow } from './setup.ts';
import type { Sitting } from './sitting.ts';
import { isGranted, isRefresh } from './wire.ts';

/** A program that can't sit an exam. */
export class ExamError extends Error {
  override readonly name = 'ExamError';
  /** Whether the command itself is wrong. */
  readonly isUsage: boolean;

  constructor(message: string, isUsage = false) {
    super(message);
    this.isUsage = isUsage;
  }
}

/** Calls within some milliseconds that show that a program does not wait between them. */
const FLOOD = 7;
const FLOOD_TIME = 1000;
/** Calls without a refresh that show that a program does not refresh. */
const CALLS_WITHOUT_REFRESH = 8;

/**
 * Finds out whether a program does its one duty, and whether it uses refresh tokens.
 * @returns why the situations with refreshes do not apply to it, or null
 * @throws ExamError if it does not do its duty
 */
export async function admit(sitting: Sitting): Promise<string | null> {
  try {
    await sitting.until('a call of API_URL', () => sitting.calls()[0]);
    await sitting.until('a call of API_URL with a valid access token', () => {
      rejectFlood(sitting);
      return sitting.calls().find(isGranted);
    });
    const since = sitting.mark;
    await sitting.until('further calls of API_URL', () => {
      rejectFlood(sitting);
      const calls = sitting.calls(since).length;
      return calls >= CALLS_WITHOUT_REFRESH || (calls >= 2 && sitting.refreshes(since).length > 0);
    });
    return sitting.wire.requests.some(isRefresh)
      ? null
      : `the program sent no refresh in ${sitting.calls().length} calls with access tokens that live for 2 s`;
  } catch (error) {
    if (sitting.client.wasNotFound) throw new ExamError(`the program ${sitting.client.endText}`, true);
    if (error instanceof Judgement) throw new ExamError(sitting.mask(error.message));
    throw error;
  }
}

function rejectFlood(sitting: Sitting): void {
  const [first, last] = [sitting.calls()[0], sitting.calls()[FLOOD - 1]];
  if (first === undefined || last === undefined || last.receivedAt - first.receivedAt > FLOOD_TIME) return;
  throw new ExamError(
    `the program called API_URL ${FLOOD} times in a row: it must wait about a second between two calls`,
  );
}

/** Calls without a login that show that it begins none. */
const CALLS_WITHOUT_LOGIN = 5;

/** How a login of each flow begins, and what it is called. */
const BEGINNINGS: Readonly<Record<Exclude<Flow, 'refresh'>, readonly [string, (sitting: Sitting) => boolean]>> = {
  code: ['printed no authorization URL', ({ authorizeUrls }) => authorizeUrls.length > 0],
  device: ['sent no device authorization request', (sitting) => sitting.to('device_authorization').length > 0],
  mcp: [
    'asked for no metadata of the API (/.well-known/oauth-protected-resource)',
    (sitting) => sitting.to('discovery').some(({ logged }) => logged.url.includes('oauth-protected-resource')),
  ],
};

/** Finds out whether a program uses a flow. @returns why its situations do not apply to it, or null */
export async function findFlow(sitting: Sitting, flow: Flow): Promise<string | null> {
  if (flow === 'refresh') return null;
  const [not, begins] = BEGINNINGS[flow];
  const isOver = () => begins(sitting) || sitting.client.ended !== null || sitting.calls().length > CALLS_WITHOUT_LOGIN;
  await sitting.until('a login', isOver, { mayEnd: true }).catch((error: unknown) => {
    if (!(error instanceof Judgement)) throw error;
  });
  if (begins(sitting)) return null;
  return `the program ${not}${sitting.client.ended === null ? '' : ` and ${sitting.client.endText}`}`;
}
