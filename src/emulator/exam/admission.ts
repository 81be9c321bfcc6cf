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

/** Why the situations of a flow do not apply to a program. */
export interface Obstacle {
  readonly seen: string;
  /** Only if it is a mistake of the program, which one of the situations reports. */
  readonly mistake?: { readonly right: string; readonly source: string };
}

/** Finds out whether a program uses a flow, and whether the server accepts its requests. */
export async function findFlow(sitting: Sitting, flow: Exclude<Flow, 'refresh'>): Promise<Obstacle | null> {
  const [not, begins] = BEGINNINGS[flow];
  const isOver = () => begins(sitting) || sitting.client.ended !== null || sitting.calls().length > CALLS_WITHOUT_LOGIN;
  await sitting.until('a login', isOver, { mayEnd: true }).catch(ignoreJudgement);
  if (begins(sitting)) return flow === 'mcp' ? null : findMistake(sitting, flow);
  return { seen: `the program ${not}${sitting.client.ended === null ? '' : ` and ${sitting.client.endText}`}` };
}

function ignoreJudgement(error: unknown): void {
  if (!(error instanceof Judgement)) throw error;
}

const AUTHENTICATES = {
  right: 'a client that has a secret sends it in all requests to the token and device authorization endpoints',
  source:
    'RFC 6749, 3.2.1: "Confidential clients or other clients issued client credentials MUST authenticate with the authorization server"; RFC 8628, 3.1: these requirements "apply to requests on this endpoint"',
};
const VALID_REQUEST = {
  right: 'the server accepts the authorization request',
  source: 'RFC 6749, 4.1.1: "The client constructs the request URI by adding the following parameters"',
};

/** What would fail every situation of a flow: a request that the server refuses whatever happens. */
async function findMistake(sitting: Sitting, flow: 'code' | 'device'): Promise<Obstacle | null> {
  if (flow === 'code') {
    const login = sitting.login(sitting.authorizeUrls[0] ?? '');
    const location = await login.catch((error: unknown) => {
      if (error instanceof Judgement) return error.message;
      throw error;
    });
    if (typeof location === 'string') return { seen: location, mistake: VALID_REQUEST };
    const error = location.searchParams.get('error');
    const description = location.searchParams.get('error_description');
    if (error !== null)
      return { seen: `the authorization request was refused: ${error}, ${description}`, mistake: VALID_REQUEST };
    await sitting.visit(location).catch(ignoreJudgement);
  }
  const answered = () => sitting.to('token').some(({ answeredAt }) => answeredAt !== null);
  await sitting.unlessStopped(() => sitting.refusal !== null || answered()).catch(ignoreJudgement);
  const { refusal } = sitting;
  return refusal?.includes('invalid_client') === true ? { seen: refusal, mistake: AUTHENTICATES } : null;
}
