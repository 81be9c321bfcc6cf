import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import { isGranted, type WireRequest } from '../wire.ts';
import { afterRestart, isOpenId, loggedIn, redirectProblem, STAYS_LOGGED_IN } from './checks.ts';

const STATE =
  'RFC 9700, 2.1: without PKCE and nonce, "one-time use CSRF tokens carried in the state parameter … MUST be used for CSRF protection"';
const ISS =
  'RFC 9207, 2.4: "Clients MUST then … compare the result to the issuer identifier of the authorization server where the authorization request was sent to"';
const CODE_ONCE = 'RFC 6749, 4.1.2: "The client MUST NOT use the authorization code more than once"';

function exchanges(sitting: Sitting, code?: string | null): WireRequest[] {
  return sitting
    .to('token')
    .filter(({ logged: { form } }) => 'code' in form && (code === undefined || form['code'] === code));
}

/** Logs the user in at the first authorization URL. */
async function logIn(sitting: Sitting): Promise<void> {
  const url = await sitting.authorizeUrl();
  const location = await sitting.login(url.href);
  await sitting.visit(location);
  await loggedIn(sitting);
}

const ITS_NONCE = 'its nonce: see the situation "id-token-nonce"';

/** Whether the nonce of an authorization request protects its client against codes of others. */
function hasNonce(request: URLSearchParams): boolean {
  return isOpenId(request) && request.has('nonce');
}

/** What protects a client against codes of others if it does without a state; null if nothing does (RFC 9700, 2.1). */
function insteadOfState(request: URLSearchParams): string | null {
  if (request.has('code_challenge')) return 'PKCE';
  return hasNonce(request) ? ITS_NONCE : null;
}

/**
 * A login of an attacker, whose response the browser of the user opens.
 * @param wrong what is wrong with the code in it
 * @param change changes the state in it
 */
function forged(
  name: string,
  right: string,
  wrong: string,
  change: (parameters: URLSearchParams) => void,
): GroupSituation {
  return {
    name,
    right,
    source: STATE,
    ownLogin: true,
    async happens(sitting) {
      const url = await sitting.authorizeUrl();
      const protection = insteadOfState(url.searchParams);
      if (!url.searchParams.has('state')) {
        if (protection !== null) doesNotApply(`the client sends no state, and relies on ${protection}`);
        fail('the authorization URL has neither a state nor a code_challenge');
      }
      const attack = new URL(url);
      change(attack.searchParams);
      if (attack.searchParams.has('code_challenge')) attack.searchParams.set('code_challenge', 'A'.repeat(43));
      if (attack.searchParams.has('nonce')) attack.searchParams.set('nonce', 'nonce-of-an-attacker');
      const injected = await sitting.login(attack.href);
      await sitting.visit(injected);
      const isTaken = () => exchanges(sitting, injected.searchParams.get('code')).length > 0;
      await sitting.visit(await sitting.login(url.href), { isPatient: false });
      await sitting.unlessStopped(
        () => isTaken() || sitting.calls().some(isGranted) || sitting.authorizeUrls.length > 1,
      );
      if (!isTaken()) return `a code ${wrong} was not exchanged`;
      if (protection !== null) doesNotApply(`the client took a code ${wrong}, and relies on ${protection}`);
      return fail(`the client took a code ${wrong}`);
    },
  };
}

/** A response that seems to come from another server. */
function issuer(name: string, right: string, change: (parameters: URLSearchParams) => void): GroupSituation {
  return {
    name,
    right,
    source: ISS,
    ownLogin: true,
    async happens(sitting) {
      const location = await sitting.login((await sitting.authorizeUrl()).href);
      if (sitting.to('discovery').length === 0) doesNotApply('the client reads no metadata, and knows one server only');
      change(location.searchParams);
      await sitting.visit(location);
      await sitting.unlessStopped(() => exchanges(sitting).length > 0 || sitting.authorizeUrls.length > 1);
      if (exchanges(sitting).length > 0)
        fail(`the client exchanged a code whose iss was ${location.searchParams.get('iss') ?? 'missing'}`);
      return 'the code was not exchanged';
    },
  };
}

/** A login by authorization code. */
export const CODE_FLOW: readonly GroupSituation[] = [
  {
    name: 'exact-redirect',
    ownLogin: true,
    right: 'the client sends the same redirect_uri in the authorization request and in the token request',
    source:
      'RFC 6749, 4.1.3: redirect_uri: "if the "redirect_uri" parameter was included in the authorization request …, and their values MUST be identical"',
    async happens(sitting) {
      const url = await sitting.authorizeUrl();
      if (!url.searchParams.has('redirect_uri')) doesNotApply('the client sends no redirect_uri');
      await sitting.visit(await sitting.login(url.href));
      await sitting.until('a token request', () => exchanges(sitting)[0]);
      const problem = redirectProblem(sitting);
      if (problem !== null) fail(problem);
      await sitting.working();
      return 'a login, with the same redirect_uri in both requests';
    },
  },
  {
    name: 'pkce',
    ownLogin: true,
    right:
      'the client sends an S256 code challenge, and then its verifier, or as a client of OpenID Connect with a secret relies on a nonce',
    source:
      'RFC 9700, 2.1.1: "Clients MUST prevent authorization code injection attacks … using one of the following options": PKCE, or for confidential clients of OpenID Connect the nonce; RFC 7636, 4.2: "If the client is capable of using "S256", it MUST use "S256""',
    async happens(sitting) {
      const { searchParams } = await sitting.authorizeUrl();
      if (!searchParams.has('code_challenge')) {
        if (hasNonce(searchParams)) doesNotApply(`the client sends no code_challenge, and relies on ${ITS_NONCE}`);
        fail('the authorization URL has no code_challenge');
      }
      if (searchParams.get('code_challenge_method') !== 'S256') fail('code_challenge_method is not S256');
      await logIn(sitting);
      return 'a login with a code challenge and its verifier';
    },
  },
  {
    name: 'new-values-for-each-login',
    ownLogin: true,
    right: 'the state, the code challenge and the nonce of a client are new in each authorization request',
    source: 'RFC 7636, 4.1: "The client first creates a code verifier … for each OAuth 2.0 … Authorization Request"',
    async happens(sitting) {
      const first = await sitting.authorizeUrl();
      const names = ['state', 'code_challenge', 'nonce'].filter((name) => first.searchParams.has(name));
      if (names.length === 0)
        doesNotApply('the client sends neither a state nor a code_challenge: see the situation "pkce"');
      await sitting.restart();
      const second = await sitting.authorizeUrl(1);
      for (const name of names) {
        if (first.searchParams.get(name) === second.searchParams.get(name)) fail(`two logins had the same ${name}`);
      }
      return `two logins, each with a new ${names.join(' and a new ')}`;
    },
  },
  forged(
    'state-of-another',
    'a client that relies on state does not exchange a code whose state is not that of the request',
    'with a state that is not its own',
    (parameters) => parameters.set('state', 'state-of-an-attacker'),
  ),
  forged(
    'state-missing',
    'a client that relies on state does not exchange a code that comes without one',
    'without a state',
    (parameters) => parameters.delete('state'),
  ),
  issuer('iss-of-another', 'a code whose iss is not the issuer is not exchanged', (parameters) => {
    parameters.set('iss', 'https://attacker.example');
  }),
  issuer('iss-missing', 'a code without iss is not exchanged if the metadata announces it', (parameters) => {
    parameters.delete('iss');
  }),
  {
    name: 'metadata-of-another',
    ownLogin: true,
    right: 'metadata with another issuer is not used',
    source: 'RFC 8414, 3.3: "If these values are not identical, the data contained in the response MUST NOT be used"',
    faults: [
      { kind: 'change_members', endpoint: 'discovery', members: '{"issuer":"https://attacker.example"}', times: null },
    ],
    async happens(sitting) {
      await sitting.unlessStopped(() => sitting.authorizeUrls.length > 0, 5);
      if (sitting.to('discovery').length === 0) doesNotApply('the client reads no metadata');
      if (sitting.authorizeUrls.length > 0) fail('the client used metadata whose issuer was https://attacker.example');
      return 'the metadata was read and not used';
    },
  },
  {
    name: 'login-refused',
    ownLogin: true,
    right: 'a refused login gives the browser an answer, and causes no token request',
    source: 'RFC 6749, 4.1.2.1: access_denied: "The resource owner or authorization server denied the request"',
    async happens(sitting) {
      const location = await sitting.login((await sitting.authorizeUrl()).href, true);
      const { status } = await sitting.visit(location);
      if (status === null) fail('the browser got no answer to error=access_denied');
      // With or without a code. A check of the client's credentials by another grant type has nothing to do with the login.
      const isExchange = ({ logged: { form } }: WireRequest) => form['grant_type'] === 'authorization_code';
      const hasExchanged = () => sitting.to('token').some(isExchange);
      await sitting.unlessStopped(() => hasExchanged() || sitting.authorizeUrls.length > 1);
      if (hasExchanged()) fail('after error=access_denied the client sent a token request');
      return `the browser got status ${status}, and there was no token request`;
    },
  },
  {
    name: 'code-refused',
    source: CODE_ONCE,
    ownLogin: true,
    right: 'a code that was refused is not sent again',
    async happens(sitting) {
      const body = '{"error":"invalid_grant"}';
      sitting.emulator.addFault({ kind: 'status', status: 400, body, endpoint: 'token', times: null });
      await sitting.visit(await sitting.login((await sitting.authorizeUrl()).href));
      await sitting.until('a token request', () => exchanges(sitting)[0], { mayEnd: true });
      await sitting.unlessStopped(() => exchanges(sitting).length > 1 || sitting.authorizeUrls.length > 1);
      if (exchanges(sitting).length > 1) fail(`the client sent a refused code ${exchanges(sitting).length} times`);
      return 'one token request with the code';
    },
  },
  {
    name: 'page-loaded-twice',
    source: CODE_ONCE,
    ownLogin: true,
    // An ID token must not expire while its response is held back.
    settings: { tokenLifetime: 3600 },
    right: 'a browser that loads the redirect URI twice does not use the code twice',
    async happens(sitting) {
      const location = await sitting.login((await sitting.authorizeUrl()).href);
      const held = sitting.wire.hold('response', ({ logged }) => logged.endpoint === 'token');
      const first = sitting.visit(location);
      await sitting.until('a token request', () => held.requests[0]);
      const second = sitting.visit(location, { isPatient: false });
      await sitting.unlessStopped(() => held.requests.length > 1);
      held.release();
      await Promise.all([first, second]);
      const { length } = exchanges(sitting, location.searchParams.get('code'));
      if (length > 1) fail(`the client sent the code ${length} times`);
      await loggedIn(sitting);
      return 'one token request, and a login that works';
    },
  },
  {
    name: 'login-survives-restart',
    settings: { tokenLifetime: 3600 },
    right: 'a restarted client needs no new login',
    source: STAYS_LOGGED_IN,
    async happens(sitting) {
      await loggedIn(sitting);
      await sitting.stop();
      sitting.refuseAccessTokens();
      const since = sitting.mark;
      sitting.start();
      await afterRestart(sitting, since);
      if (sitting.loginsSince(since) > 0) fail('after a restart the client asked for a new login');
      await sitting.working(since);
      return 'after a restart the client went on without a new login';
    },
  },
];
