import type { Settings } from '../../settings/settings.ts';
import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import { isGranted } from '../wire.ts';
import { isOpenId, loggedIn } from './checks.ts';

const CORE = 'OpenID Connect Core 1.0, 3.1.3.7';

/** The authorization request of a login for which the client wants an ID token. */
async function openIdRequest(sitting: Sitting): Promise<URLSearchParams> {
  const { searchParams } = await sitting.authorizeUrl();
  if (!isOpenId(searchParams)) doesNotApply('the client requests no scope openid, although OAUTH_SCOPE says so');
  return searchParams;
}

/** An ID token that must be refused. */
function wrong(name: string, idTokenError: Settings['idTokenError'], what: string, source: string): GroupSituation {
  return {
    name,
    source: `${CORE}, ${source}`,
    right: `a login whose ID token ${what} is no login: its access token is not used`,
    scope: 'openid',
    settings: { idTokenError },
    async happens(sitting) {
      const request = await openIdRequest(sitting);
      if (idTokenError === 'nonce' && !request.has('nonce')) doesNotApply('the client sends no nonce');
      await sitting.until('a token request', () => sitting.to('token')[0], { mayEnd: true });
      const isUsed = () => sitting.calls().some(isGranted);
      await sitting.unlessStopped(() => isUsed() || sitting.authorizeUrls.length > 1);
      if (!isUsed()) return 'the login was refused';
      const readsKeys = sitting.to('discovery').some(({ logged }) => logged.url.includes('jwks'));
      if (idTokenError === 'unknown-key' && !readsKeys) {
        doesNotApply(`the client asks for no keys, and relies on TLS to the token endpoint (${CORE}, 6)`);
      }
      return fail(`the client called the API after a login whose ID token ${what}`);
    },
  };
}

/** A login with an ID token. */
export const OPENID: readonly GroupSituation[] = [
  {
    name: 'right-id-token',
    source: CORE,
    right: 'a login with a right ID token works',
    scope: 'openid',
    async happens(sitting) {
      await openIdRequest(sitting);
      await loggedIn(sitting);
      return 'a login with the scope openid, and calls of the API';
    },
  },
  wrong(
    'id-token-issuer',
    'iss',
    'has another issuer',
    '2: the issuer "MUST exactly match the value of the iss (issuer) Claim"',
  ),
  wrong(
    'id-token-audience',
    'aud',
    'is for another client',
    '3: "The ID Token MUST be rejected if the ID Token does not list the Client as a valid audience"',
  ),
  wrong(
    'id-token-expired',
    'exp',
    'has expired',
    '9: "The current time MUST be before the time represented by the exp Claim"',
  ),
  wrong('id-token-nonce', 'nonce', 'has another nonce', '11: "a nonce Claim MUST be present and its value checked"'),
  wrong(
    'id-token-unsigned',
    'unsigned',
    'is not signed',
    '7: "The alg value SHOULD be the default of RS256 or the algorithm sent by the Client"',
  ),
  wrong(
    'id-token-key',
    'unknown-key',
    'is signed with an unknown key',
    '6: "The Client MUST use the keys provided by the Issuer"',
  ),
];
