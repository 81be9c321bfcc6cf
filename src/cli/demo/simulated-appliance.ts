import { Agent, request } from 'undici';
import * as v from 'valibot';
import type { IssuedCredentials } from '../../core/administration.ts';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';

/** What came of asking for a token once and using it. */
export type TokenUseOutcome =
  /** The cloud took the token. `fresh`: it is another one than before. */
  | { readonly kind: 'good'; readonly fresh: boolean; readonly expiresIn: number; readonly user: string }
  | { readonly kind: 'not_paired' }
  /** A slow machine: the token ran out on its way to the cloud, or the hub asked to come back. Nothing was wrong with it. */
  | { readonly kind: 'late'; readonly reason: string }
  | { readonly kind: 'bad'; readonly reason: string };

const tokenResponse = v.object({ access_token: v.string(), expires_in: v.number() });
const whoami = v.object({ user: v.string() });

/**
 * An appliance as its maker would write it, with nothing of Latchkey in it: it asks a standard token endpoint for a
 * token with `client_credentials`, trusting the hub's CA alone, and takes the token to the cloud.
 */
export class SimulatedAppliance implements AsyncDisposable {
  readonly name: string;
  readonly #credentials: IssuedCredentials;
  readonly #apiUrl: string;
  readonly #agent: Agent;
  readonly #clock: Clock;
  #lastToken = '';

  /**
   * @param ca the hub's CA, PEM
   * @param apiUrl the base URL of the cloud's API
   * @param clock tells whether a token that the cloud refused had run out meanwhile
   */
  constructor(credentials: IssuedCredentials, ca: string, apiUrl: string, clock: Clock) {
    this.name = credentials.name;
    this.#credentials = credentials;
    this.#apiUrl = apiUrl;
    this.#clock = clock;
    this.#agent = new Agent({ connect: { ca } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  /** Asks for a token and shows it to the cloud API. */
  async useToken(): Promise<TokenUseOutcome> {
    try {
      const { clientId, clientSecret, tokenEndpoint } = this.#credentials;
      const asked = this.#clock.now().uptime;
      const basic = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64');
      const answer = await request(tokenEndpoint, {
        method: 'POST',
        dispatcher: this.#agent,
        headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
        body: 'grant_type=client_credentials',
      });
      const body = await answer.body.json();
      if (answer.statusCode !== 200) return rejectionOutcome(answer.statusCode, body);
      const { access_token, expires_in } = v.parse(tokenResponse, body);
      const fresh = access_token !== this.#lastToken;
      this.#lastToken = access_token;
      const cloud = await request(`${this.#apiUrl}/api/whoami`, {
        headers: { authorization: `Bearer ${access_token}` },
      });
      const said = await cloud.body.json();
      if (cloud.statusCode !== 200) {
        const hasRunOut = this.#clock.now().uptime - asked >= expires_in * 1000;
        return hasRunOut
          ? { kind: 'late', reason: `the token for ${expires_in} s ran out on its way to the cloud` }
          : { kind: 'bad', reason: `the cloud refused the token: HTTP ${cloud.statusCode}` };
      }
      return { kind: 'good', fresh, expiresIn: expires_in, user: v.parse(whoami, said).user };
    } catch (error) {
      return { kind: 'bad', reason: messageOf(error) };
    }
  }
}

function rejectionOutcome(status: number, body: unknown): TokenUseOutcome {
  const error = v.is(v.object({ error: v.string() }), body) ? body.error : 'no reason given';
  if (error === 'invalid_grant') return { kind: 'not_paired' };
  const reason = `the hub answered ${status} ${error}`;
  return { kind: error === 'temporarily_unavailable' ? 'late' : 'bad', reason };
}
